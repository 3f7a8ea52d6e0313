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
	switch nextUseOf(tokenOf(vm), a.now(), meta.ExternalCreateIncomplete(vm), meta.GetExternalName(vm) != "") {
	case useRepeated:
		meta.AddAnnotations(vm, map[string]string{v1alpha1.AnnotationClientTokenRepeated: a.now().UTC().Format(time.RFC3339)})
		return nil
	case useAgain:
		return nil
	case useLater:
		return &native.Error{Class: fn.ErrorTransient, Err: errors.New("the ClientToken is too old, and EC2 may not show its instance yet"), Refused: true}
	}
	token := tokenOf(vm).text
	// The ID is that of an instance that was terminated before it ran. If the response to the next creation is lost,
	// FindLost finds its instance only without a name.
	meta.RemoveAnnotations(vm, meta.AnnotationKeyExternalName, v1alpha1.AnnotationClientTokenRepeated)
	meta.AddAnnotations(vm, map[string]string{
		v1alpha1.AnnotationClientToken:      nextToken(string(vm.GetUID()), token),
		v1alpha1.AnnotationClientTokenSince: a.now().UTC().Format(time.RFC3339),
	})
	return nil
}

// A token is the ClientToken of a VM. Its text is empty if there is none.
type token struct {
	text string
	// since is when it was chosen. repeated is when a creation of unknown result was last repeated with it: an instance of the
	// token may exist that EC2 does not show yet. It is zero if there was none.
	since, repeated time.Time
}

// lastUse returns the last time before which a creation with the token may have had an effect.
func (t token) lastUse() time.Time {
	if t.repeated.After(t.since) {
		return t.repeated
	}
	return t.since
}

func tokenOf(vm *v1alpha1.VirtualMachine) token {
	at := vm.GetAnnotations()
	since, err := time.Parse(time.RFC3339, at[v1alpha1.AnnotationClientTokenSince])
	if err != nil {
		return token{}
	}
	out := token{text: at[v1alpha1.AnnotationClientToken], since: since}
	if repeated, err := time.Parse(time.RFC3339, at[v1alpha1.AnnotationClientTokenRepeated]); err == nil {
		out.repeated = repeated
	}
	return out
}

// A use is the way in which the next creation uses the token of the last one.
type use string

const (
	// useRepeated: the result of the last creation is unknown, and the next one repeats it.
	useRepeated use = "repeated"
	// useAgain: the last creation was refused, but the result of one before it is unknown.
	useAgain use = "again"
	// useLater: the token is too old to be used, and EC2 may not show its instance yet.
	useLater use = "later"
	// useNone: the next creation has another token.
	useNone use = "none"
)

// nextUseOf returns the use of a token. An instance of the token is known if it ended before it ran. A token is replaced
// only if EC2 certainly shows an instance that it created: FindLost found none.
func nextUseOf(t token, now time.Time, unknown, known bool) use {
	unsettled := now.Sub(t.lastUse()) < settle
	switch {
	case t.text == "" || known:
		return useNone
	case now.Sub(t.since) >= tokenFor && (unknown || !t.repeated.IsZero()) && unsettled:
		return useLater
	case now.Sub(t.since) >= tokenFor:
		return useNone
	case unknown:
		return useRepeated
	case !t.repeated.IsZero() && unsettled:
		return useAgain
	}
	return useNone
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
		if err == nil && len(out.Images) == 0 {
			return types.Image{}, native.Invalid("imageID", "%q: the region has no such image, or it is not shared with the account", id)
		}
		if hasCode(err, "InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "InvalidAMIID.Unavailable") {
			return types.Image{}, native.Invalid("imageID", "%q: the region has no such image, or it is not shared with the account", id)
		}
		if err != nil {
			return types.Image{}, classify("cannot read image "+id, err)
		}
		return out.Images[0], nil
	})
}
