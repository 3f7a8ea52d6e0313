package digitalocean

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/digitalocean/godo"
	"golang.org/x/oauth2"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/cloud/trust"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/ratelimit"
	"github.com/drover-dev/drover/internal/text"
)

const (
	// perPage is the most that DigitalOcean lists at once.
	perPage = 200
	// answerTimeout ends a call that DigitalOcean does not answer.
	answerTimeout = time.Minute
	// maxMessage is the length to which an error of the API is shortened.
	maxMessage = 256
)

// Types of resources.
const (
	typeVolume     = "Volume"
	typeReservedIP = "ReservedIP"
)

// Options of a Lister.
type Options struct {
	// Credentials are an API token, or a JSON object {"token": "..."}. They are required.
	Credentials []byte
	// Endpoint is the URL of the API. Default https://api.digitalocean.com.
	Endpoint string
	// CABundle in PEM format has the authorities that sign the certificate of the endpoint. Default:
	// those that the system trusts.
	CABundle []byte
	// Transport sends the calls. Default: one that trusts the CABundle and waits a minute for an
	// answer.
	Transport http.RoundTripper
}

// New returns a Lister of the account that the credentials are of. It makes no call.
func New(_ context.Context, o Options) (inventory.Lister, error) {
	token, err := tokenOf(o.Credentials)
	if err != nil {
		return nil, err
	}
	if o.Transport == nil {
		if o.Transport, err = trust.Transport(o.CABundle, answerTimeout); err != nil {
			return nil, err
		}
	}
	opts := []godo.ClientOpt{godo.SetUserAgent("drover")}
	if o.Endpoint != "" {
		if u, err := url.Parse(o.Endpoint); err != nil || u.Scheme == "" || u.Host == "" {
			return nil, fmt.Errorf("endpoint: invalid value %q: must be a URL, such as https://api.digitalocean.com", o.Endpoint)
		}
		opts = append(opts, godo.SetBaseURL(strings.TrimRight(o.Endpoint, "/")+"/"))
	}
	c, err := godo.New(&http.Client{Transport: &oauth2.Transport{
		Base: ratelimit.New(o.Transport), Source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token}),
	}}, opts...)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	return &lister{c}, nil
}

type lister struct{ client *godo.Client }

var (
	_ inventory.ResourceLister = &lister{}
	_ inventory.Finder         = &lister{}
)

// List lists the Droplets with the tag of the installation, in all regions of the account.
func (l *lister) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	droplets, complete, err := l.droplets(ctx, installation)
	if err != nil || !complete {
		return nil, false, err
	}
	vms := make([]inventory.VM, 0, len(droplets))
	for i := range droplets {
		vm, err := vmOf(&droplets[i])
		if err != nil {
			return nil, false, err
		}
		if vm.Tags[machinev1alpha1.TagInstallation] == installation {
			vms = append(vms, vm)
		}
	}
	return vms, true, nil
}

func (l *lister) droplets(ctx context.Context, installation string) ([]godo.Droplet, bool, error) {
	tag := machinev1alpha1.TagInstallation + ":" + installation
	return all(ctx, "Droplets", func(d godo.Droplet) string { return strconv.Itoa(d.ID) },
		func(ctx context.Context, page *godo.ListOptions) ([]godo.Droplet, *godo.Response, error) {
			return l.client.Droplets.ListByTag(ctx, url.QueryEscape(tag), page)
		})
}

// Find returns the Droplets with these IDs, regardless of their tags, by a call per ID.
func (l *lister) Find(ctx context.Context, ids []string) ([]inventory.VM, bool, error) {
	var vms []inventory.VM
	for _, text := range ids {
		id, err := strconv.Atoi(text)
		if err != nil || id <= 0 {
			continue // No Droplet has such an ID.
		}
		d, resp, err := l.client.Droplets.Get(ctx, id)
		if err != nil && resp != nil && resp.Response != nil && resp.StatusCode == http.StatusNotFound {
			continue
		}
		if err != nil {
			return nil, false, describe("Droplet "+text, err)
		}
		vm, err := vmOf(d)
		if err != nil {
			return nil, false, err
		}
		vms = append(vms, vm)
	}
	return vms, true, nil
}

// all lists every page. The list is not complete if the number of items changed between two pages,
// or differs from the number of listed items: pages are numbered, so the deletion of an item
// meanwhile moves another item to a page that was read before.
func all[T any](ctx context.Context, what string, id func(T) string, list func(context.Context, *godo.ListOptions) ([]T, *godo.Response, error)) ([]T, bool, error) {
	var out []T
	seen, total := map[string]bool{}, -1
	for page := 1; ; page++ {
		items, resp, err := list(ctx, &godo.ListOptions{Page: page, PerPage: perPage})
		if err != nil {
			return nil, false, describe(what, err)
		}
		for _, item := range items {
			if !seen[id(item)] {
				out = append(out, item)
			}
			seen[id(item)] = true
		}
		if resp.Meta == nil || total >= 0 && resp.Meta.Total != total {
			return nil, false, nil
		}
		if total = resp.Meta.Total; resp.Links == nil || resp.Links.IsLastPage() {
			return out, len(out) == total, nil
		}
	}
}

// describe returns an error of a call with its class in front.
func describe(what string, err error) error {
	var refused *godo.ErrorResponse
	if errors.As(err, &refused) && refused.Response != nil {
		// The ID of the request would make each error a new one. The message of a gateway is a
		// whole page.
		refused.RequestID, refused.Message = "", text.Shorten(refused.Message, maxMessage)
		switch refused.Response.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return fmt.Errorf("PermissionDenied: cannot read %s: %w", what, err)
		}
	}
	return fmt.Errorf("cannot read %s: %w", what, err)
}

func vmOf(d *godo.Droplet) (inventory.VM, error) {
	id := strconv.Itoa(d.ID)
	created, err := time.Parse(time.RFC3339, d.Created)
	if err != nil && d.Created != "" {
		return inventory.VM{}, fmt.Errorf("cannot read Droplet %s: created_at: invalid value %q: must be a time like 2026-01-02T15:04:05Z", id, d.Created)
	}
	return inventory.VM{
		ExternalName: id,
		ProviderID:   "digitalocean://" + id,
		Name:         d.Name,
		Tags:         tagsOf(d.Tags),
		CreatedAt:    created,
		State:        stateOf(d.Status),
		StateText:    "status " + cmp.Or(d.Status, "unknown"),
	}, nil
}

// stateOf a Droplet, of which DigitalOcean documents new, active, off and archive.
func stateOf(status string) inventory.State {
	switch status {
	case "new":
		return inventory.StatePending
	case "active":
		return inventory.StateRunning
	case "off", "archive":
		return inventory.StateStopped
	}
	return inventory.StateUnknown
}

// tagsOf returns the tags of Drover, which are pairs of key and value.
func tagsOf(words []string) map[string]string {
	out := map[string]string{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, ":")
		if ok && slices.Contains(ours, key) {
			out[key] = value
		}
	}
	return out
}

var ours = []string{
	machinev1alpha1.TagInstallation, machinev1alpha1.TagCluster, machinev1alpha1.TagNamespace,
	machinev1alpha1.TagMachine, machinev1alpha1.TagMachineUID,
}
