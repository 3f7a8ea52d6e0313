package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	pve "github.com/luthermonson/go-proxmox"
	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/proxmox/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/native"
)

const (
	// listingFor is how long a list of VMs is used: VMs that are observed at the same time share one call.
	listingFor = 2 * time.Second
	// stockFor is how long a list of nodes or storages and the configuration of a template are used.
	stockFor = 30 * time.Second
	// reservedFor is how long a VMID is reserved for a VM whose clone is not listed yet.
	reservedFor = 5 * time.Minute
)

// An account is a cluster that one API token accesses.
type account struct {
	client *pve.Client
	now    func() time.Time

	// lists of VMs, nodes and storages, by the names of these kinds in the API.
	lists     map[string]*native.Listing[entry]
	templates templates
	choice    choice

	mu sync.Mutex
	// views are the views of VMs by UUID, from the observation for the step that follows it.
	views native.Views[view]
	// known are the attributes of VMs by UUID. They never change.
	known map[string]known
	// ended are the last tasks of VMs by UUID.
	ended map[string]ended
}

// An ended is a task and the time when it was first observed to have ended. An older list may not show its
// effect.
type ended struct {
	task string
	at   time.Time
}

var (
	_ native.Account[*v1alpha1.VirtualMachine] = &account{}
	_ inventory.ResourceLister                 = &account{}
)

// open returns a function that opens an account. Its calls use the transport next, or the network if next
// is nil.
func open(next http.RoundTripper, now func() time.Time) func(client.Object, credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
	return func(pc client.Object, c credentials) (native.Account[*v1alpha1.VirtualMachine], error) {
		p, err := newClient(v1alpha1.SpecOf(pc), c, next)
		if err != nil {
			return nil, err
		}
		return &account{
			client: p, now: now, known: map[string]known{}, ended: map[string]ended{},
			lists: map[string]*native.Listing[entry]{
				"vm": native.NewListing[entry](), "node": native.NewListing[entry](), "storage": native.NewListing[entry](),
			},
			templates: templates{configs: map[string]template{}},
			choice:    choice{turn: semaphore.NewWeighted(1), reserved: map[string]reservation{}},
		}, nil
	}
}

// Place is the name of the cluster, or the name of a node that is in no cluster.
func (a *account) Place(ctx context.Context) (string, error) {
	place := ""
	var entries []struct {
		Type  string `json:"type"`
		Name  string `json:"name"`
		Local int    `json:"local"`
	}
	if err := a.client.Get(ctx, "/cluster/status", &entries); err != nil {
		return "", classify("cannot read the status of the cluster", err)
	}
	for _, e := range entries {
		switch {
		case e.Type == "cluster":
			place = "cluster " + e.Name
		case e.Type == "node" && e.Local == 1 && place == "":
			place = "node " + e.Name
		}
	}
	if place == "" {
		return "", fmt.Errorf("the server names neither a cluster nor its node")
	}
	return place, nil
}

// An entry is an entry of /cluster/resources: a VM, a node, or a storage on a node.
type entry struct {
	Type     string `json:"type"`
	Node     string `json:"node"`
	Status   string `json:"status"`
	MaxMem   int64  `json:"maxmem"`
	VMID     int64  `json:"vmid"`
	Name     string `json:"name"`
	Tags     string `json:"tags"`
	Lock     string `json:"lock"`
	Template int    `json:"template"`
	Storage  string `json:"storage"`
	Content  string `json:"content"`
	Shared   int    `json:"shared"`
}

// isVM reports whether the entry is a VM, and neither a container nor a template.
func (e entry) isVM() bool { return e.Type == "qemu" && e.Template == 0 }

// allows reports whether a storage allows content of a type.
func (e entry) allows(content string) bool {
	return slices.Contains(strings.Split(e.Content, ","), content)
}

// list returns entries of a kind, as the API names it, that are older neither than since nor than age.
func (a *account) list(ctx context.Context, kind string, since time.Time, age time.Duration) ([]entry, error) {
	entries, _, err := a.lists[kind].Get(ctx, a.now, since, age, func() ([]entry, bool, error) {
		var entries []entry
		err := a.client.Get(ctx, "/cluster/resources?type="+kind, &entries)
		return entries, true, classify("cannot list the "+kind+"s of the cluster", err)
	})
	return entries, err
}

func (a *account) listVMs(ctx context.Context, since time.Time) ([]entry, error) {
	return a.list(ctx, "vm", since, listingFor)
}

func (a *account) listNodes(ctx context.Context) ([]entry, error) {
	return a.list(ctx, "node", time.Time{}, stockFor)
}

func (a *account) listStorages(ctx context.Context) ([]entry, error) {
	return a.list(ctx, "storage", time.Time{}, stockFor)
}

// readConfig returns the configuration of a VM. The second value is false if the node has no such VM.
func (a *account) readConfig(ctx context.Context, node string, vmid int64) (config, bool, error) {
	var c config
	err := a.client.Get(ctx, fmt.Sprintf("/nodes/%s/qemu/%d/config", node, vmid), &c)
	if isNoConfiguration(err) {
		return nil, false, nil
	}
	return c, err == nil, classify("cannot read the configuration of the VM", err)
}

// isFree reports whether no VM or container has the VMID. This includes those that the token may not read.
func (a *account) isFree(ctx context.Context, vmid int64) (bool, error) {
	var id any
	err := a.client.Get(ctx, fmt.Sprintf("/cluster/nextid?vmid=%d", vmid), &id)
	if e := asAPIError(err); e != nil && e.Status == http.StatusBadRequest && strings.Contains(e.Error(), "already exists") {
		return false, nil
	}
	return err == nil, classify("cannot check the VMID", err)
}
