package alibaba

import (
	"context"
	"maps"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/google/uuid"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/alibaba/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// An image is an image of ECS, as DescribeImages returns it.
type image struct {
	ImageId, Architecture, OSType, Status string
	// Size in GiB.
	Size               int32
	IsSupportCloudinit bool
}

// An instanceType is an instance type, as DescribeInstanceTypes returns it.
type instanceType struct {
	InstanceTypeId, CpuArchitecture string
}

// Prepare validates the spec, and chooses the ClientToken.
func (a *account) Prepare(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	p := vm.Spec.ForProvider
	if err := validate(p); err != nil {
		return err
	}
	t, err := a.instanceType(ctx, ptr.Deref(p.InstanceType, ""))
	if err != nil {
		return err
	}
	if t == nil {
		return native.Invalid("instanceType", "%q: region %s has no such instance type", ptr.Deref(p.InstanceType, ""), a.region)
	}
	i, err := a.image(ctx, p)
	if err != nil {
		return err
	}
	if err := checkImage(p, i, *t); err != nil {
		return err
	}
	if meta.ExternalCreateIncomplete(vm) && vm.GetAnnotations()[v1alpha1.AnnotationClientToken] != "" {
		return nil
	}
	// The ID is that of an instance that ECS removed before it ran. If the response to the next creation is lost,
	// FindLost finds its instance only without a name.
	meta.RemoveAnnotations(vm, meta.AnnotationKeyExternalName)
	meta.AddAnnotations(vm, map[string]string{v1alpha1.AnnotationClientToken: uuid.NewString()})
	return nil
}

// validate validates everything that needs no call and that the schema cannot validate.
func validate(p v1alpha1.VirtualMachineParameters) error {
	if vSwitchOf(p) == "" {
		var zones []string
		for _, s := range p.VSwitches {
			zones = append(zones, s.ZoneID)
		}
		return native.Invalid("zoneID", "%q: vSwitches has no such zone, only %q, and vSwitchID is not set", ptr.Deref(p.ZoneID, ""), zones)
	}
	return validateTags(p.Tags)
}

// imageField returns the field that names the image, and its value.
func imageField(p v1alpha1.VirtualMachineParameters) (field, value string) {
	if p.ImageFamily != nil {
		return "imageFamily", *p.ImageFamily
	}
	return "imageID", ptr.Deref(p.ImageID, "")
}

// checkImage checks that the image exists and suits the instance type and the system disk.
func checkImage(p v1alpha1.VirtualMachineParameters, i *image, t instanceType) error {
	field, value := imageField(p)
	if i == nil {
		return native.Invalid(field, "%q: the region has no such available image, or it is not shared with the account", value)
	}
	if archOfImage, archOfType := armOrX86(i.Architecture), armOrX86(t.CpuArchitecture); archOfImage != "" && archOfType != "" && archOfImage != archOfType {
		return native.Invalid(field, "%q: the image is for %s, and instance type %s is %s", value, archOfImage, t.InstanceTypeId, archOfType)
	}
	if d := p.SystemDisk; d != nil && d.SizeGiB != nil && *d.SizeGiB < i.Size {
		return native.Invalid("systemDisk.sizeGiB", "invalid value %d: must be at least %d, the size of image %s", *d.SizeGiB, i.Size, i.ImageId)
	}
	if (p.UserData.UserData != nil || p.UserDataSecretRef != nil) && !i.IsSupportCloudinit {
		return native.Invalid(field, "%q: the image does not support cloud-init, and so reads no user data", value)
	}
	return nil
}

// armOrX86 returns the architecture in the words of the API as Arm or x86, or "" if it is unknown.
func armOrX86(architecture string) string {
	switch architecture {
	case "arm64", "ARM":
		return "Arm"
	case "x86_64", "i386", "X86":
		return "x86"
	}
	return ""
}

// image returns the image of a spec, or nil if there is none.
func (a *account) image(ctx context.Context, p v1alpha1.VirtualMachineParameters) (*image, error) {
	field, value := imageField(p)
	params := map[string]string{"ImageId": value}
	if field == "imageFamily" {
		params = map[string]string{"ImageFamily": value}
	}
	return lookUp(a, a.images, field+"/"+value, func() (*image, error) {
		var out struct{ Images struct{ Image []image } }
		if err := a.callRegion(ctx, "DescribeImages", params, &out); err != nil {
			return nil, classify("cannot read image "+value, err)
		}
		return first(out.Images.Image), nil
	})
}

// instanceType returns the instance type with the name, or nil if there is none.
func (a *account) instanceType(ctx context.Context, name string) (*instanceType, error) {
	return lookUp(a, a.types, name, func() (*instanceType, error) {
		var out struct {
			InstanceTypes struct{ InstanceType []instanceType }
		}
		if err := a.callRegion(ctx, "DescribeInstanceTypes", map[string]string{"InstanceTypes.1": name}, &out); err != nil {
			return nil, classify("cannot read instance type "+name, err)
		}
		return first(out.InstanceTypes.InstanceType), nil
	})
}

func first[T any](list []T) *T {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// lookUp returns a property that was read at most stockFor ago, or reads it. A property that does not exist is
// read each time: a user may just have created it.
func lookUp[T any](a *account, all map[string]known[T], key string, read func() (*T, error)) (*T, error) {
	a.mu.Lock()
	k, ok := all[key]
	a.mu.Unlock()
	if ok && k.value != nil && a.now().Sub(k.at) < stockFor {
		return k.value, nil
	}
	value, err := read()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(all, func(_ string, k known[T]) bool { return a.now().Sub(k.at) >= stockFor })
	all[key] = known[T]{value: value, at: a.now()}
	return value, nil
}
