package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/aws/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// tokenFor is how long a ClientToken is used. EC2 keeps one for at least a day.
const tokenFor = 12 * time.Hour

// Prepare validates the spec, and chooses the ClientToken.
func (a *account) Prepare(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	p := vm.Spec.ForProvider
	if err := validate(p); err != nil {
		return err
	}
	i, err := a.image(ctx, ptr.Deref(p.ImageID, ""))
	if err != nil {
		return err
	}
	if err := checkImage(p, i); err != nil {
		return err
	}
	last := tokenOf(vm)
	unknown := meta.ExternalCreateIncomplete(vm) && last.text != ""
	switch unsettled := a.now().Sub(meta.GetExternalCreatePending(vm)) < settle; {
	case unknown && unsettled && a.now().Sub(last.since) < tokenFor:
		return nil
	case unknown && unsettled:
		return &native.Error{Class: fn.ErrorTransient, Err: errors.New("the ClientToken is too old, and EC2 may not show its instance yet"), Refused: true}
	}
	// If there is an instance of the last token, it ended before it ran: FindLost found none.
	// The ID is that of an instance that was terminated before it ran. If the response to the next creation is lost,
	// FindLost finds its instance only without a name.
	meta.RemoveAnnotations(vm, meta.AnnotationKeyExternalName)
	meta.AddAnnotations(vm, map[string]string{
		v1alpha1.AnnotationClientToken:      nextToken(string(vm.GetUID()), last.text),
		v1alpha1.AnnotationClientTokenSince: a.now().UTC().Format(time.RFC3339),
	})
	return nil
}

// A token is the ClientToken of a VM, and the time at which it was chosen. Its text is empty if there is none.
type token struct {
	text  string
	since time.Time
}

func tokenOf(vm *v1alpha1.VirtualMachine) token {
	since, err := time.Parse(time.RFC3339, vm.GetAnnotations()[v1alpha1.AnnotationClientTokenSince])
	if err != nil {
		return token{}
	}
	return token{text: vm.GetAnnotations()[v1alpha1.AnnotationClientToken], since: since}
}

// nextToken returns the ClientToken of the attempt after the one with the token last.
func nextToken(uid, last string) string {
	n, err := strconv.Atoi(strings.TrimPrefix(last, uid+"-"))
	if err != nil {
		n = 0
	}
	return fmt.Sprintf("%s-%d", uid, n+1)
}

// validate validates everything that needs no call and that the schema cannot validate.
func validate(p v1alpha1.VirtualMachineParameters) error {
	if subnetOf(p) == "" {
		var zones []string
		for _, s := range p.Subnets {
			zones = append(zones, s.AvailabilityZone)
		}
		return native.Invalid("availabilityZone", "%q: subnets has no such zone, only %q, and subnetID is not set", ptr.Deref(p.AvailabilityZone, ""), zones)
	}
	for _, tags := range []struct {
		field string
		tags  map[string]string
	}{{"tags", p.Tags}, {"volumeTags", p.VolumeTags}, {"networkInterfaceTags", p.NetworkInterfaceTags}} {
		if err := validateTags(tags.field, tags.tags); err != nil {
			return err
		}
	}
	return nil
}

// Maximum lengths of the name and of the value of a tag in characters.
const maxTagName, maxTagValue = 128, 256

func validateTags(field string, tags map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		switch v := tags[k]; {
		case k == "" || len([]rune(k)) > maxTagName:
			return native.Invalid(field, "invalid name %q: must have 1 to %d characters", k, maxTagName)
		case strings.HasPrefix(strings.ToLower(k), "aws:"):
			return native.Invalid(field, "invalid name %q: must not begin with \"aws:\"", k)
		case len([]rune(v)) > maxTagValue:
			return native.Invalid(field, "invalid value of %s: must have at most %d characters", k, maxTagValue)
		}
	}
	return nil
}

// checkImage checks that the image suits the root volume.
func checkImage(p v1alpha1.VirtualMachineParameters, i types.Image) error {
	if i.State != types.ImageStateAvailable {
		return native.Invalid("imageID", "%q: the image is %s", aws.ToString(i.ImageId), i.State)
	}
	if p.RootVolume == nil {
		return nil
	}
	root := rootOf(i)
	if root == nil {
		return native.Invalid("rootVolume", "image %s does not boot from an EBS volume", aws.ToString(i.ImageId))
	}
	if size := p.RootVolume.SizeGiB; size != nil && *size < aws.ToInt32(root.VolumeSize) {
		return native.Invalid("rootVolume.sizeGiB", "invalid value %d: must be at least %d, the size of image %s", *size, aws.ToInt32(root.VolumeSize), aws.ToString(i.ImageId))
	}
	return nil
}

// rootOf returns the root volume of an image, or nil if it has none.
func rootOf(i types.Image) *types.EbsBlockDevice {
	for _, b := range i.BlockDeviceMappings {
		if aws.ToString(b.DeviceName) == aws.ToString(i.RootDeviceName) {
			return b.Ebs
		}
	}
	return nil
}

// image returns the image with the ID.
func (a *account) image(ctx context.Context, id string) (types.Image, error) {
	release, err := a.references.Hold(ctx)
	if err != nil {
		return types.Image{}, err
	}
	defer release()
	return native.Reference(a.references, "image/"+id, func() (types.Image, error) {
		out, err := a.EC2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}})
		if err == nil && len(out.Images) == 0 || hasCode(err, "InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "InvalidAMIID.Unavailable") {
			return types.Image{}, native.Invalid("imageID", "%q: the region has no such image, or it is not shared with the account", id)
		}
		if err != nil {
			return types.Image{}, classify("cannot read image "+id, err)
		}
		return out.Images[0], nil
	})
}
