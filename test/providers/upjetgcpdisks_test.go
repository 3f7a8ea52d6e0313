package providers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/cloud/gcp"
	"github.com/drover-dev/drover/internal/function/machinetest"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/test/fakes/gcptest"
)

// googleCloudWith has a plane of Google Cloud whose class has companions, and attaches disks that exist.
func googleCloudWith(t *testing.T, failureDomain string, companions map[string]any, attached ...any) *machinetest.Plane {
	t.Helper()
	return newPlane(t, "upjet-gcp", failureDomain, func(class *unstructured.Unstructured) {
		machinetest.Set(class, companions, "spec", "companions")
		if attached != nil {
			machinetest.Set(class, attached, "spec", "forProvider", "attachedDisk")
		}
	})
}

func attachedDisks(p *machinetest.Plane) []any {
	list, _, _ := unstructured.NestedSlice(p.Composed[machinev1alpha1.ResourceVM].Object, "spec", "forProvider", "attachedDisk")
	return list
}

// TestDataDisksOfGoogleCloudComeFirst has a class of another zone than the Machine's failure domain, with three
// data disks and a disk that exists.
func TestDataDisksOfGoogleCloudComeFirst(t *testing.T) {
	existing := map[string]any{"source": "projects/my-project/regions/europe-west4/disks/models", "mode": "READ_ONLY"}
	p := googleCloudWith(t, "europe-west4-b", map[string]any{
		"datadisk": forProvider(map[string]any{"size": int64(100), "type": "pd-ssd", "labels": map[string]any{"team": "platform"}}),
		"datadisk2": forProvider(map[string]any{
			"snapshot": "projects/my-project/global/snapshots/data", "zone": "europe-west4-c", "project": "other-project",
			"diskEncryptionKey": map[string]any{"kmsKeySelfLink": "projects/my-project/locations/europe-west4/keyRings/nodes/cryptoKeys/disks"},
		}),
		"datadisk3": forProvider(map[string]any{
			"image":             "projects/my-project/global/images/data",
			"diskEncryptionKey": map[string]any{"rawKeySecretRef": map[string]any{"name": "disk-key", "key": "key"}},
		}),
	}, existing)
	p.Reconcile()
	p.Reconcile()
	for i, want := range []string{"Disk", "Disk Disk", "Disk Disk Disk", "Disk Disk Disk Instance"} {
		if got := composed(p); got != want {
			t.Fatalf("step %d: composed %q, want %q: %v", i, got, want, p.Machine.Object["status"])
		}
		for name, c := range p.Composed {
			if machinev1alpha1.IsCompanion(name) {
				companionIsReady(t, c)
			}
		}
		p.Reconcile()
	}
	vm := p.Composed[machinev1alpha1.ResourceVM].GetName()
	disk := func(name string) string {
		return "projects/my-project/zones/europe-west4-b/disks/" + vm + "-" + name
	}
	want := []any{
		existing,
		map[string]any{"deviceName": "datadisk", "source": disk("datadisk")},
		map[string]any{"deviceName": "datadisk2", "source": disk("datadisk2")},
		map[string]any{"deviceName": "datadisk3", "source": disk("datadisk3"), "diskEncryptionKeyRawSecretRef": map[string]any{"name": "disk-key", "key": "key"}},
	}
	if diff := cmp.Diff(want, attachedDisks(p)); diff != "" {
		t.Errorf("attached disks: -want +got:\n%s", diff)
	}
	for _, name := range []string{"companion-datadisk", "companion-datadisk2", "companion-datadisk3"} {
		if zone, project := forProviderOf(p, name, "zone"), forProviderOf(p, name, "project"); zone != forProviderOf(p, "vm", "zone") || project != forProviderOf(p, "vm", "project") || zone != "europe-west4-b" {
			t.Errorf("%s is in zone %q of project %q, the VM is in %q of %q", name, zone, project, forProviderOf(p, "vm", "zone"), forProviderOf(p, "vm", "project"))
		}
		golden(t, "upjet-gcp-three-"+name, withoutUserData(p.Composed[name]))
	}
}

// TestDataDisksOfGoogleCloudArePinned: when the VM exists, its provider may only observe and delete the disk. The disk
// is deleted after the VM.
func TestDataDisksOfGoogleCloudArePinned(t *testing.T) {
	p := newPlane(t, "upjet-gcp", "")
	rendered(t, p)
	disk := p.Composed["companion-datadisk"]
	before, _, _ := unstructured.NestedMap(disk.Object, "spec", "forProvider")
	vmIsThere(t, p, "upjet-gcp")
	p.Reconcile()
	if disk = p.Composed["companion-datadisk"]; disk == nil {
		t.Fatalf("composed %q", composed(p))
	}
	policies, _, _ := unstructured.NestedStringSlice(disk.Object, "spec", "managementPolicies")
	after, _, _ := unstructured.NestedMap(disk.Object, "spec", "forProvider")
	if diff := cmp.Diff(before, after); diff != "" || !slices.Equal(policies, []string{"Observe", "Delete"}) {
		t.Errorf("policies %v, fields -before +after:\n%s", policies, diff)
	}
	if a := disk.GetAnnotations(); a[machinev1alpha1.AnnotationOrder] != "0" || a[machinev1alpha1.AnnotationAfterVM] != "" {
		t.Errorf("annotations %v", a)
	}
	// The class is edited or deleted: the disk stays, because its VM uses it.
	p.Others = p.Others[1:]
	p.Reconcile()
	if p.Composed["companion-datadisk"] == nil || conditionOf(p, "Valid")["status"] != "True" {
		t.Errorf("without the class: composed %q, Valid is %v", composed(p), conditionOf(p, "Valid"))
	}
}

// TestAClassOfGoogleCloudWithoutDataDisks checks that a VM without data disks has exactly the attachedDisk of its class.
func TestAClassOfGoogleCloudWithoutDataDisks(t *testing.T) {
	existing := map[string]any{"source": "models", "mode": "READ_ONLY"}
	for name, attached := range map[string][]any{"None": nil, "OneThatExists": {existing}} {
		t.Run(name, func(t *testing.T) {
			p := googleCloudWith(t, "", nil, attached...)
			rendered(t, p)
			if diff := cmp.Diff(attached, attachedDisks(p)); diff != "" || composed(p) != "Instance" {
				t.Errorf("composed %q, attached disks: -want +got:\n%s", composed(p), diff)
			}
		})
	}
}

func TestInvalidDataDisksOfGoogleCloud(t *testing.T) {
	for name, tc := range map[string]struct {
		companions map[string]any
		change     func(class *unstructured.Unstructured)
		want       string
	}{
		"UnknownField":              {companions: map[string]any{"datadisk": forProvider(map[string]any{"sizeGb": int64(100)})}, want: "companions.datadisk.forProvider.sizeGb: unknown field"},
		"OtherType":                 {companions: map[string]any{"datadisk2": forProvider(map[string]any{"size": "100"})}, want: "companions.datadisk2.forProvider.size: Invalid value"},
		"KeyInPlainText":            {companions: map[string]any{"datadisk": forProvider(map[string]any{"diskEncryptionKey": map[string]any{"rawKey": "x"}})}, want: "companions.datadisk.forProvider.diskEncryptionKey.rawKey: unknown field"},
		"CompanionThatDoesNotExist": {companions: map[string]any{"datadisk4": forProvider(nil)}, want: `companions.datadisk4: VMs of provider \"upjet-gcp\" have no such companion: they may have datadisk, datadisk2, datadisk3`},
		"AttachedDiskIsNoList": {
			companions: map[string]any{"datadisk": forProvider(map[string]any{"size": int64(100)})},
			change: func(class *unstructured.Unstructured) {
				machinetest.Set(class, "models", "spec", "forProvider", "attachedDisk")
			},
			want: "forProvider.attachedDisk: Invalid value",
		},
		"NoZone": {
			companions: map[string]any{"datadisk": forProvider(map[string]any{"size": int64(100)})},
			change: func(class *unstructured.Unstructured) {
				unstructured.RemoveNestedField(class.Object, "spec", "forProvider", "zone")
			},
			want: "companions.datadisk.forProvider.zone: Required value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t, "upjet-gcp", "", func(class *unstructured.Unstructured) {
				machinetest.Set(class, tc.companions, "spec", "companions")
				if tc.change != nil {
					tc.change(class)
				}
			})
			refusesClass(t, p, tc.want)
		})
	}
}

// TestRefusalsOfADataDiskOfGoogleCloud: the Machine reports the error of its disk with its class, and there is no VM.
func TestRefusalsOfADataDiskOfGoogleCloud(t *testing.T) {
	p := newPlane(t, "upjet-gcp", "")
	p.Reconcile()
	p.Reconcile()
	disk := p.Composed["companion-datadisk"]
	disk.SetAnnotations(merged(disk.GetAnnotations(), "crossplane.io/external-name", disk.GetName()))
	for _, tc := range []struct{ message, code string }{
		{`Error creating Disk: googleapi: Error 403: Quota 'DISKS_TOTAL_GB' exceeded.  Limit: 4096.0 in region europe-west4., quotaExceeded`, "QuotaExceeded"},
		{`Error creating Disk: googleapi: Error 403: Quota 'SSD_TOTAL_GB' exceeded.  Limit: 500.0 in region europe-west4., quotaExceeded`, "QuotaExceeded"},
		{`Error waiting to create Disk: Error waiting for Creating Disk: QUOTA_EXCEEDED: Quota 'HDB-TOTAL-GB-per-project-region' exceeded.  Limit: 1000.0 in region europe-west4.`, "QuotaExceeded"},
		{`Error waiting to create Disk: Error waiting for Creating Disk: The zone 'projects/my-project/zones/europe-west4-a' does not have enough resources available to fulfill the request.  Try a different zone, or try again later.`, "CapacityExhausted"},
		{`Error creating Disk: googleapi: Error 403: Required 'compute.disks.create' permission for 'projects/my-project/zones/europe-west4-a/disks/x', forbidden`, "PermissionDenied"},
		{`Error creating Disk: googleapi: Error 400: Invalid value for field 'resource.type': 'x'. The referenced resource does not exist., invalid`, "InvalidRequest"},
		{`Error creating Disk: googleapi: Error 404: The resource 'projects/my-project/global/snapshots/x' was not found, notFound`, "InvalidRequest"},
		{`Error creating Disk: googleapi: Error 403: Rate Limit Exceeded, rateLimitExceeded`, "Throttled"},
	} {
		machinetest.Condition(disk, "LastAsyncOperation", "False", "AsyncCreateFailure", fmt.Sprintf("async create failed: failed to create the resource: [{0 %s  []}]", tc.message))
		p.Reconcile()
		begins := "Disk workers-x7k2p-crf74-datadisk: async create failed"
		if tc.code == "PermissionDenied" {
			begins = `Disk workers-x7k2p-crf74-datadisk: ClusterProviderConfig "default": async create failed`
		}
		if code, text := status(p, "lastOperation", "errorCode"), status(p, "lastOperation", "description"); code != tc.code || !strings.HasPrefix(text, begins) {
			t.Errorf("%s: %s, want %s", code, text, tc.code)
		}
		if composed(p) != "Disk" {
			t.Errorf("composed %s", composed(p))
		}
	}
}

// TestADataDiskOfGoogleCloudThatIsLeftIsFound lists the disks of a project, which have the labels that the Composition
// sets, by the calls of provider-inventory.
func TestADataDiskOfGoogleCloudThatIsLeftIsFound(t *testing.T) {
	p := newPlane(t, "upjet-gcp", "")
	vm := rendered(t, p)
	rendering, _, _ := unstructured.NestedStringMap(p.Composed["companion-datadisk"].Object, "spec", "forProvider", "labels")
	const zone, at, account = "europe-west4-a", "https://google.example.org", "inventory@my-project.iam.gserviceaccount.com"
	synctest.Test(t, func(t *testing.T) {
		state := &gcptest.Memory{}
		cloud := gcptest.New(gcptest.Options{State: state, Project: "my-project"})
		cloud.Grant(account, gcptest.Viewer...)
		key, _, err := cloud.NewKey(account, at)
		if err != nil {
			t.Fatal(err)
		}
		disk := gcptest.Resource{Type: gcptest.Disk, Name: vm.GetName() + "-datadisk", Location: zone, Labels: rendering}
		of := func(vm string) gcptest.Resource {
			out := disk
			out.Name, out.User = vm+"-datadisk", gcptest.Link("my-project", zone, vm)
			return out
		}
		foreign := disk
		foreign.Name, foreign.Labels = "foreign", maps.Clone(rendering)
		foreign.Labels[machinev1alpha1.TagInstallation] = "0a1b2c3d-0000-4000-8000-000000000002"
		state.Set(nil, disk, of("in-use"), foreign)
		lister, err := gcp.New(t.Context(), gcp.Options{Credentials: key, Endpoint: at, Transport: cloud.Transport()})
		if err != nil {
			t.Fatal(err)
		}
		found, complete, err := lister.(inventory.ResourceLister).ListResources(t.Context(), "0a1b2c3d-0000-4000-8000-000000000001")
		if err != nil || !complete {
			t.Fatalf("complete: %t, error %v", complete, err)
		}
		want := []inventory.Resource{
			{Type: "Disk", ID: "projects/my-project/zones/europe-west4-a/disks/in-use-datadisk", AttachedTo: "projects/my-project/zones/europe-west4-a/instances/in-use"},
			{Type: "Disk", ID: "projects/my-project/zones/europe-west4-a/disks/" + vm.GetName() + "-datadisk"},
		}
		for i := range want {
			want[i].Tags, want[i].CreatedAt = rendering, found[min(i, len(found)-1)].CreatedAt
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if tags := found[1].Tags; tags[machinev1alpha1.TagMachine] != p.Machine.GetName() || tags[machinev1alpha1.TagNamespace] != p.Machine.GetNamespace() {
			t.Errorf("an OrphanCollector would report the Machine %s/%s", tags[machinev1alpha1.TagNamespace], tags[machinev1alpha1.TagMachine])
		}
	})
}
