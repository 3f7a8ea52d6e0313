package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// A known is the part of a VM's configuration that the inventory needs: the attributes in the notes, and the
// time of the creation.
type known struct {
	attributes map[string]string
	createdAt  time.Time
}

// List lists the VMs of an installation by their tags. It reads the notes of each VM once.
func (a *account) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	entries, err := a.listVMs(ctx, time.Time{})
	if err != nil {
		return nil, false, err
	}
	want, complete := tag(tagInstallation, installation), true
	var out []inventory.VM
	for _, e := range entries {
		uuid := uuidOfTags(e.Tags)
		if !e.isVM() || uuid == "" || !slices.ContainsFunc(splitTags(e.Tags), func(t string) bool { return strings.EqualFold(t, want) }) {
			continue
		}
		k, there, err := a.knownOf(ctx, uuid, e)
		if err != nil {
			return nil, false, err
		}
		if !there {
			complete = false // The VM is being migrated.
			continue
		}
		// Several installations may have one tag, because a tag allows fewer characters.
		if k.attributes[machinev1alpha1.TagInstallation] == installation {
			out = append(out, asListed(e, uuid, k))
		}
	}
	return out, complete, nil
}

// Find finds VMs by their tags. If no tag has one of the names, it reads the configurations of all VMs
// without a tag of Drover: a user may have removed it.
func (a *account) Find(ctx context.Context, externalNames []string) ([]inventory.VM, bool, error) {
	entries, err := a.listVMs(ctx, time.Time{})
	if err != nil {
		return nil, false, err
	}
	missing := map[string]string{}
	for _, n := range externalNames {
		missing[strings.ToLower(n)] = n
	}
	var out []inventory.VM
	complete := true
	add := func(uuid string, e entry, k known) {
		vm := asListed(e, uuid, k)
		vm.ExternalName = missing[uuid]
		out = append(out, vm)
		delete(missing, uuid)
	}
	for _, e := range entries {
		if uuid := uuidOfTags(e.Tags); e.isVM() && missing[uuid] != "" {
			add(uuid, e, known{})
		}
	}
	for _, e := range entries {
		if len(missing) == 0 {
			break
		}
		if !e.isVM() || uuidOfTags(e.Tags) != "" {
			continue
		}
		c, there, err := a.readConfig(ctx, e.Node, e.VMID)
		if err != nil {
			return nil, false, err
		}
		complete = complete && there
		if uuid := c.uuid(); missing[uuid] != "" {
			add(uuid, e, knownFrom(c))
		}
	}
	return out, complete, nil
}

func (a *account) knownOf(ctx context.Context, uuid string, e entry) (known, bool, error) {
	a.mu.Lock()
	k, ok := a.known[uuid]
	a.mu.Unlock()
	if ok {
		return k, true, nil
	}
	c, there, err := a.readConfig(ctx, e.Node, e.VMID)
	if err != nil || !there {
		return known{}, false, err
	}
	k = knownFrom(c)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[uuid] = k
	return k, true, nil
}

func knownFrom(c config) known {
	_, attributes := readNotes(c["description"])
	k := known{attributes: attributes}
	if s, err := strconv.ParseInt(option(c["meta"], "ctime"), 10, 64); err == nil {
		k.createdAt = time.Unix(s, 0).UTC()
	}
	return k
}

// forget removes a VM that no longer exists from memory.
func (a *account) forget(uuid string) {
	a.views.Recall(uuid)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, strings.ToLower(uuid))
	delete(a.ended, uuid)
}

func asListed(e entry, uuid string, k known) inventory.VM {
	vm := inventory.VM{ExternalName: uuid, ProviderID: providerID(uuid), Name: e.Name, Tags: k.attributes, CreatedAt: k.createdAt, StateText: e.Status}
	switch {
	case e.Lock != "":
		vm.State = inventory.StatePending
	case e.Status == "running":
		vm.State = inventory.StateRunning
	case e.Status == "stopped":
		vm.State = inventory.StateStopped
	}
	return vm
}

// A content is a volume on a storage.
type content struct {
	VolID string `json:"volid"`
	CTime int64  `json:"ctime"`
}

func (c content) name() string {
	_, name, _ := strings.Cut(c.VolID, ":iso/")
	return name
}

func (a *account) listImages(ctx context.Context, node, storage string) ([]content, error) {
	var out []content
	err := a.client.Get(ctx, fmt.Sprintf("/nodes/%s/storage/%s/content?content=iso", node, storage), &out)
	if e := asAPIError(err); e != nil && e.Status == http.StatusInternalServerError && strings.Contains(e.Text, "does not exist") {
		return nil, nil // The storage was removed together with its volumes.
	}
	return out, classify("cannot list the images of storage "+storage, err)
}

// resourceImage is the type of an image in an inventory.
const resourceImage = "CloudInitImage"

// ListResources lists the images with user data on all storages.
func (a *account) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
	vms, err := a.listVMs(ctx, time.Time{})
	if err != nil {
		return nil, false, err
	}
	exists := map[string]bool{}
	for _, e := range vms {
		exists[uuidOfTags(e.Tags)] = true
	}
	storages, err := a.listStorages(ctx)
	if err != nil {
		return nil, false, err
	}
	want := notInTag.ReplaceAllString(strings.ToLower(installation), "_")
	var out []inventory.Resource
	complete, shared := true, map[string]bool{}
	for _, s := range storages {
		if !s.allows("iso") || s.Shared == 1 && shared[s.Storage] {
			continue
		}
		if s.Status != "available" {
			complete = false
			continue
		}
		shared[s.Storage] = true
		images, err := a.listImages(ctx, s.Node, s.Storage)
		if err != nil {
			return nil, false, err
		}
		for _, i := range images {
			if in, uuid, ok := readImageName(i.name()); ok && in == want {
				out = append(out, asResource(s, i, installation, uuid, exists[uuid]))
			}
		}
	}
	return out, complete, nil
}

func asResource(s entry, c content, installation, uuid string, used bool) inventory.Resource {
	r := inventory.Resource{Type: resourceImage, ID: c.VolID, Tags: map[string]string{machinev1alpha1.TagInstallation: installation}}
	if s.Shared == 0 {
		r.ID = s.Node + "/" + c.VolID
	}
	if c.CTime > 0 {
		r.CreatedAt = time.Unix(c.CTime, 0).UTC()
	}
	if used {
		r.AttachedTo = uuid
	}
	return r
}
