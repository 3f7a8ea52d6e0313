package yandex

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	compute "github.com/yandex-cloud/go-genproto/yandex/cloud/compute/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/cloud/trust"
	"github.com/drover-dev/drover/internal/inventory"
)

const (
	// pageSize is the most that Yandex Cloud lists at once.
	pageSize        = 1000
	defaultEndpoint = "api.cloud.yandex.net:443"
)

// Options of a Lister.
type Options struct {
	// Credentials are the JSON of an authorized key of a service account. Empty: the service
	// account of the VM that the process runs on.
	Credentials []byte
	// FolderID of the folder whose Instances are listed. It is required.
	FolderID string
	// Endpoint is the address of the service that names the endpoints of all services, with or
	// without https:// before it. Default https://api.cloud.yandex.net.
	Endpoint string
	// CABundle in PEM format has the authorities that sign the certificates of all services.
	// Default: those that the system trusts.
	CABundle []byte
	// MetadataURL of the metadata service. Default http://169.254.169.254.
	MetadataURL string
}

// New returns a Lister of the folder. It makes no call.
func New(_ context.Context, o Options) (inventory.Lister, error) {
	if o.FolderID == "" {
		return nil, errors.New("folderID: must not be empty")
	}
	address, err := addressOf(cmp.Or(o.Endpoint, defaultEndpoint))
	if err != nil {
		return nil, err
	}
	trusted, err := trust.Config(o.CABundle)
	if err != nil {
		return nil, err
	}
	l := &lister{
		folder: o.FolderID, endpoint: address, pause: firstPause, now: time.Now, tls: trusted,
		metadata: &http.Client{Timeout: 10 * time.Second}, metadataURL: strings.TrimRight(cmp.Or(o.MetadataURL, defaultMetadataURL), "/"),
	}
	if len(strings.TrimSpace(string(o.Credentials))) > 0 {
		key, err := keyOf(o.Credentials)
		if err != nil {
			return nil, err
		}
		l.key = key
	}
	return l, nil
}

// addressOf an endpoint, with its port.
func addressOf(endpoint string) (string, error) {
	u, err := url.Parse("https://" + strings.TrimPrefix(endpoint, "https://"))
	if err != nil || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || strings.Contains(u.Host, "/") {
		return "", fmt.Errorf("endpoint: must be like https://%s", strings.TrimSuffix(defaultEndpoint, ":443"))
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")), nil
}

type lister struct {
	folder, endpoint string
	tls              *tls.Config
	pause            time.Duration
	now              func() time.Time
	// key is nil if the service account of the VM is used.
	key         *serviceAccountKey
	metadata    *http.Client
	metadataURL string

	mu    sync.Mutex
	token iamToken
}

var (
	_ inventory.ResourceLister = &lister{}
	_ inventory.Finder         = &lister{}
)

// List lists the Instances with the label of the installation, in all zones of the folder. Yandex
// Cloud has no filter for labels, so the whole folder is read.
func (l *lister) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	s, err := l.start(ctx)
	if err != nil {
		return nil, false, err
	}
	defer s.close()
	instances, err := s.instances(ctx)
	if err != nil {
		return nil, false, err
	}
	var vms []inventory.VM
	for _, i := range instances {
		if i.GetLabels()[machinev1alpha1.TagInstallation] == installation && i.GetStatus() != compute.Instance_DELETING {
			vms = append(vms, vmOf(i))
		}
	}
	return vms, true, nil
}

// Find returns the Instances with these IDs, regardless of their labels. It reads the whole folder,
// as List does.
func (l *lister) Find(ctx context.Context, ids []string) ([]inventory.VM, bool, error) {
	s, err := l.start(ctx)
	if err != nil {
		return nil, false, err
	}
	defer s.close()
	instances, err := s.instances(ctx)
	if err != nil {
		return nil, false, err
	}
	var vms []inventory.VM
	for _, i := range instances {
		if slices.Contains(ids, i.GetId()) && i.GetStatus() != compute.Instance_DELETING {
			vms = append(vms, vmOf(i))
		}
	}
	return vms, true, nil
}

func (s *session) instances(ctx context.Context) ([]*compute.Instance, error) {
	conn, err := s.service(serviceCompute)
	if err != nil {
		return nil, err
	}
	service := compute.NewInstanceServiceClient(conn)
	return all(s, "Instances", func(token string) ([]*compute.Instance, string, error) {
		r, err := service.List(s.authorized(ctx), &compute.ListInstancesRequest{FolderId: s.lister.folder, PageSize: pageSize, PageToken: token})
		return r.GetInstances(), r.GetNextPageToken(), err
	})
}

// all lists every page, in the order of IDs.
func all[T any](s *session, what string, list func(token string) ([]T, string, error)) ([]T, error) {
	var out []T
	for token := ""; ; {
		items, next, err := list(token)
		if err != nil {
			return nil, describe(fmt.Sprintf("cannot list %s of folder %s", what, s.lister.folder), s.lister.forget(err))
		}
		out = append(out, items...)
		if next == "" {
			return out, nil
		}
		if next == token {
			return nil, fmt.Errorf("cannot list %s of folder %s: the page after a page is the same one", what, s.lister.folder)
		}
		token = next
	}
}

func vmOf(i *compute.Instance) inventory.VM {
	vm := inventory.VM{
		ExternalName: i.GetId(), ProviderID: "yandex://" + i.GetId(), Name: i.GetName(), Tags: i.GetLabels(),
		State: stateOf(i.GetStatus()), StateText: "status " + i.GetStatus().String(),
	}
	if created := i.GetCreatedAt(); created != nil {
		vm.CreatedAt = created.AsTime()
	}
	return vm
}

// stateOf returns the state of an Instance: see
// https://yandex.cloud/docs/compute/concepts/vm-statuses. Yandex Cloud restarts an Instance that
// crashed, and may stop one temporarily to update it.
func stateOf(s compute.Instance_Status) inventory.State {
	switch s {
	case compute.Instance_PROVISIONING, compute.Instance_STARTING, compute.Instance_RESTARTING, compute.Instance_CRASHED:
		return inventory.StatePending
	case compute.Instance_RUNNING:
		return inventory.StateRunning
	case compute.Instance_STOPPING, compute.Instance_STOPPED:
		return inventory.StateStopped
	case compute.Instance_ERROR:
		return inventory.StateFailed
	}
	return inventory.StateUnknown
}
