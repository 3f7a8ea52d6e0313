package gcp

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/google/uuid"
	"google.golang.org/api/compute/v1"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/gcp/v1alpha1"
	cloudgcp "github.com/drover-dev/drover/internal/cloud/gcp"
	"github.com/drover-dev/drover/internal/native"
)

// keyUserData is the key of the metadata that images with cloud-init or Ignition read.
const keyUserData = "user-data"

// maxMetadata is the maximum size of one value of the metadata in bytes, and maxAllMetadata that of all of it.
const maxMetadata, maxAllMetadata = 256 << 10, 512 << 10

// Prepare validates the spec, and chooses the request ID.
func (a *account) Prepare(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	p := vm.Spec.ForProvider
	if err := validate(p); err != nil {
		return err
	}
	if err := a.checkReferences(ctx, p); err != nil {
		return err
	}
	// An instance that cannot be listed could be created, and never observed.
	if _, _, err := a.listed(ctx, time.Time{}, restingFor); err != nil {
		return err
	}
	if meta.ExternalCreateIncomplete(vm) && vm.GetAnnotations()[v1alpha1.AnnotationRequestID] != "" {
		return nil
	}
	meta.RemoveAnnotations(vm, v1alpha1.AnnotationOperation)
	meta.AddAnnotations(vm, map[string]string{v1alpha1.AnnotationRequestID: uuid.NewString()})
	return nil
}

var (
	labelKey      = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	labelValue    = regexp.MustCompile(`^[a-z0-9_-]{0,63}$`)
	metadataKey   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	region        = regexp.MustCompile(`/regions/([a-z0-9-]+)/`)
	customMachine = regexp.MustCompile(`(^|-)custom-`)
)

// validate validates everything that needs no call and that the schema cannot validate.
func validate(p v1alpha1.VirtualMachineParameters) error {
	zone := ptr.Deref(p.Zone, "")
	for n, i := range p.NetworkInterfaces {
		found := region.FindStringSubmatch(ptr.Deref(i.Subnetwork, ""))
		if found != nil && found[1] != regionOf(zone) {
			return native.Invalid(fmt.Sprintf("networkInterfaces[%d].subnetwork", n), "%q: must be in region %s, that of zone %s", *i.Subnetwork, regionOf(zone), zone)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(p.Labels)) {
		switch {
		case !labelKey.MatchString(k):
			return native.Invalid("labels", "invalid key %q: must have 1 to 63 lower-case letters, digits, - and _, with a letter first", k)
		case !labelValue.MatchString(p.Labels[k]):
			return native.Invalid("labels", "invalid value of %s: must have at most 63 lower-case letters, digits, - and _", k)
		}
	}
	size := 0
	for _, k := range slices.Sorted(maps.Keys(p.Metadata)) {
		switch {
		case k == keyUserData:
			return native.Invalid("metadata", "invalid key %q: the user data is that of userDataSecretRef", k)
		case !metadataKey.MatchString(k):
			return native.Invalid("metadata", "invalid key %q: must have 1 to 128 letters, digits, - and _", k)
		case len(p.Metadata[k]) > maxMetadata:
			return native.Invalid("metadata", "the value of %s has %d bytes: at most %d are allowed", k, len(p.Metadata[k]), maxMetadata)
		}
		size += len(k) + len(p.Metadata[k])
	}
	if size > maxAllMetadata {
		return native.Invalid("metadata", "it has %d bytes: at most %d are allowed", size, maxAllMetadata)
	}
	return nil
}

// regionOf returns the region of a zone: europe-west4 of europe-west4-a.
func regionOf(zone string) string { return zone[:max(strings.LastIndexByte(zone, '-'), 0)] }

// checkReferences checks that the machine type and the image exist and suit each other.
func (a *account) checkReferences(ctx context.Context, p v1alpha1.VirtualMachineParameters) error {
	project, err := a.project(ctx)
	if err != nil {
		return err
	}
	release, err := a.refs.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	t, err := a.machineType(ctx, project, ptr.Deref(p.Zone, ""), ptr.Deref(p.MachineType, ""))
	if err != nil {
		return err
	}
	i, err := a.image(ctx, project, p.BootDisk.Image)
	if err != nil {
		return err
	}
	return checkImage(p.BootDisk, i, t)
}

// checkImage checks that the image suits the machine type, which is nil if it is a custom one, and the boot disk.
func checkImage(d *v1alpha1.BootDisk, i *compute.Image, t *compute.MachineType) error {
	switch {
	case i.Status != "" && i.Status != "READY":
		return native.Invalid("bootDisk.image", "%q: the status of image %s is %s", d.Image, i.Name, i.Status)
	case i.Deprecated != nil && (i.Deprecated.State == "OBSOLETE" || i.Deprecated.State == "DELETED"):
		return native.Invalid("bootDisk.image", "%q: image %s is %s, and can no longer be used", d.Image, i.Name, i.Deprecated.State)
	case t != nil && t.Architecture != "" && i.Architecture != "" && t.Architecture != i.Architecture:
		return native.Invalid("bootDisk.image", "%q: the image is for %s, and machine type %s is %s", d.Image, i.Architecture, t.Name, t.Architecture)
	case d.SizeGB != nil && int64(*d.SizeGB) < i.DiskSizeGb:
		return native.Invalid("bootDisk.sizeGB", "invalid value %d: must be at least %d, the size of image %s", *d.SizeGB, i.DiskSizeGb, i.Name)
	}
	return nil
}

// Keys of references.
type (
	machineTypeKey struct{ zone, name string }
	imageKey       string
)

// machineType returns the machine type in a zone, or nil if it is a custom one, which has no entry. The references are
// held.
func (a *account) machineType(ctx context.Context, p *cloudgcp.Project, zone, name string) (*compute.MachineType, error) {
	if customMachine.MatchString(name) {
		return nil, nil
	}
	return native.Reference(a.refs, machineTypeKey{zone, name}, func() (*compute.MachineType, error) {
		t, err := p.Service.MachineTypes.Get(p.ID, zone, name).Fields("name,architecture").Context(ctx).Do()
		if hasStatus(err, http.StatusNotFound) {
			return nil, native.Invalid("machineType", "%q: zone %s has no such machine type, or there is no such zone", name, zone)
		}
		return t, classify("cannot read machine type "+name, err)
	})
}

// image returns an image, or the newest one of a family. The references are held.
func (a *account) image(ctx context.Context, p *cloudgcp.Project, text string) (*compute.Image, error) {
	project, name := splitImage(text, p.ID)
	return native.Reference(a.refs, imageKey(text), func() (*compute.Image, error) {
		const fields = "name,architecture,diskSizeGb,status,deprecated"
		var i *compute.Image
		var err error
		if family, ok := strings.CutPrefix(name, "family/"); ok {
			i, err = p.Service.Images.GetFromFamily(project, family).Fields(fields).Context(ctx).Do()
		} else {
			i, err = p.Service.Images.Get(project, name).Fields(fields).Context(ctx).Do()
		}
		if hasStatus(err, http.StatusNotFound) {
			return nil, native.Invalid("bootDisk.image", "%q: project %s has no such image, or it is not shared with the service account", text, project)
		}
		return i, classify("cannot read image "+text, err)
	})
}

// splitImage returns the project of an image, and its name or family/NAME.
func splitImage(text, project string) (of, name string) {
	if rest, ok := strings.CutPrefix(text, "projects/"); ok {
		project, text, _ = strings.Cut(rest, "/")
	}
	return project, strings.TrimPrefix(text, "global/images/")
}
