package simulator

import (
	"fmt"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
)

// A Description says all that is to be known of a cloud besides its Composition. Paths of
// files are from the root of the repository. Texts marked as templates are Go templates
// of
//
//	.vm      the managed resource: .vm.metadata.name, .vm.spec.forProvider.region
//	.id      its external name, once there is one
//	.name    the host name of the VM
//	.number  a number that no other VM of the cloud has
//	.hex     the same in 17 hexadecimal digits
//	.ip      the private address of the VM, once it is there; of what belongs to one,
//	         such as its network interface, "" before
//	.secondIP  the second private address of a VM, and .ipv6 its IPv6 address, with .ip
//	.publicIP  its public one
type Description struct {
	// Provider is the one of the classes.
	Provider string `json:"provider"`
	// Runtime of the provider. The default takes the fields of a resource as they are.
	Runtime Runtime `json:"runtime,omitempty"`
	// Poll is how the provider looks again at what exists. The default is every 10 minutes, as
	// with crossplane-runtime before v2.3.
	Poll Poll `json:"poll,omitempty"`
	// Composition is the file of the Composition, if it is not in Drover's package.
	Composition string `json:"composition,omitempty"`
	// Class is the file of the MachineClass that Machines are made of.
	Class string `json:"class"`
	// Rights are the files with the rights that a user gives to Drover.
	Rights []string `json:"rights"`
	// CRDs are the files of the kinds, and of others that a class needs.
	CRDs []string `json:"crds"`
	// ProviderConfig is the kind that holds the credentials.
	ProviderConfig ProviderConfig `json:"providerConfig"`
	// Resources are the kinds that the Composition makes.
	Resources []Resource `json:"resources"`
	// Refusals are how the cloud says that it creates no VM, by the class of the error.
	Refusals map[fn.ErrorCode]Refusal `json:"refusals"`
	// FailedAllocation is how the cloud fails to place a VM that it has accepted. Left out, it
	// refuses a VM for which it has no room.
	FailedAllocation *FailedAllocation `json:"failedAllocation,omitempty"`
	// Cannot says of cases of the suite that the provider cannot have why.
	Cannot map[string]string `json:"cannot,omitempty"`
}

// A Poll is how a provider looks again at what exists.
type Poll struct {
	// HonoursAnnotation means that the provider has crossplane-runtime v2.3 or later, which goes by
	// the annotation crossplane.io/poll-interval.
	HonoursAnnotation bool `json:"honoursAnnotation,omitempty"`
	// UntilReady is the interval for a resource that is not Ready, as of provider-kubernetes. Such
	// a resource is Ready at once unless spec.readiness.policy is DeriveFromCelQuery.
	UntilReady *metav1.Duration `json:"untilReady,omitempty"`
}

// A FailedAllocation is a VM that is accepted, and then cannot be placed.
type FailedAllocation struct {
	// Error of the creation.
	Error string `json:"error"`
	// Stays means that the VM stays at the cloud, in a state that the provider does not show.
	// Otherwise the cloud terminates it, and the provider does not find it.
	Stays bool `json:"stays,omitempty"`
}

// A Runtime is how a provider brings the fields of a resource to its cloud.
type Runtime string

// TerraformCLI writes the fields into a main.tf.json, where each string is a template. The
// provider's configuration in Go has WithIncludeList, and its main has NewWorkspaceStore.
const TerraformCLI Runtime = "TerraformCLI"

// A ProviderConfig is a kind that the simulator installs by itself: a cluster-scoped one
// whose spec.credentials.secretRef names the Secret with the credentials.
type ProviderConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Missing is what the provider says when there is none of the name, SecretMissing when
	// there is no Secret: templates of .kind, .name and .namespace.
	Missing       string `json:"missing"`
	SecretMissing string `json:"secretMissing"`
	// Refused is what the cloud says to wrong credentials.
	Refused string `json:"refused"`
}

// A Resource is a kind of managed resources.
type Resource struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Async is for providers that upjet makes: they report by LastAsyncOperation.
	Async bool `json:"async,omitempty"`
	// ExternalName is a template of what the cloud calls it. Empty is for providers that
	// call it by its name, and know that before they create it.
	ExternalName string `json:"externalName,omitempty"`
	// Place is a template of .vm with all by which the provider finds it beside its external name,
	// such as its resource group. A resource that names another place finds nothing.
	Place string `json:"place,omitempty"`
	// AtProvider is what the provider tells of it in status.atProvider. Its texts are
	// templates.
	AtProvider map[string]any `json:"atProvider,omitempty"`
	// Starting is what the provider tells in addition of a VM that is created and does not run yet.
	// Left out, a creation ends only when the VM runs: most Terraform providers wait for that.
	Starting map[string]any `json:"starting,omitempty"`
	// LateInitialized are the fields of spec.forProvider that the provider fills in from the cloud,
	// if they are not there, as soon as it has seen the resource.
	LateInitialized map[string]any `json:"lateInitialized,omitempty"`
	// TagsItself means that the provider adds tags of its own to the field of the tags, as upjet's
	// TagInitializer does.
	TagsItself bool `json:"tagsItself,omitempty"`
	// Gone is what the provider tells in addition of one that somebody deleted at the
	// cloud. Left out, the provider sees it no more: then the cloud-controller-manager
	// deletes its Node.
	Gone map[string]any `json:"gone,omitempty"`
	// Interrupted is what the provider tells in addition of a spot VM that the cloud stopped.
	// Left out, the cloud stops none.
	Interrupted map[string]any `json:"interrupted,omitempty"`
	// VM is left out of what is none, such as a network interface.
	VM *VM `json:"vm,omitempty"`
}

// GroupVersionKind of the resource.
func (r Resource) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// A VM is what a cloud makes of a resource.
type VM struct {
	// Name is a template of the host name. The default is the resource's name.
	Name string `json:"name,omitempty"`
	// UserData is where the cloud finds it.
	UserData UserData `json:"userData"`
	// Tags is where the cloud finds them.
	Tags Tags `json:"tags"`
	// Metadata is what the metadata service answers.
	Metadata []Answer `json:"metadata,omitempty"`
	// ProviderID is a template of what the cloud-controller-manager writes on the Node of
	// a kubelet that registers none.
	ProviderID string `json:"providerID,omitempty"`
}

// UserData in a resource.
type UserData struct {
	// Path of the field, of which the last [*] stands for any element of a list. It holds
	// the user data, or the name of a Secret.
	Path string `json:"path"`
	// SecretKey is the key in the Secret that the field names.
	SecretKey string `json:"secretKey,omitempty"`
	// Base64 is how the user data is encoded there.
	Base64 bool `json:"base64,omitempty"`
}

// Tags in a resource.
type Tags struct {
	// Path of the field: a map, or a list of words.
	Path string `json:"path"`
	// Separator of key and value in a word.
	Separator string `json:"separator,omitempty"`
	// OfAccount means that a tag is an object of the account, which outlives the VMs that have
	// it: a VM has only tags that many have, and is found by its name.
	OfAccount bool `json:"ofAccount,omitempty"`
}

// An Answer of a metadata service.
type Answer struct {
	// URL that is asked for, by Method with the Headers.
	URL string `json:"url"`
	// Method is GET by default.
	Method string `json:"method,omitempty"`
	// Headers that must be there, with values that are templates.
	Headers map[string]string `json:"headers,omitempty"`
	// Text is a template of what is answered.
	Text string `json:"text"`
}

// A Refusal is an error of a creation, or what the provider tells of a VM that is created
// and does not come to run.
type Refusal struct {
	Error      string         `json:"error,omitempty"`
	AtProvider map[string]any `json:"atProvider,omitempty"`
}

// Read a description.
func Read(file string) (*Description, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := &Description{}
	if err := yaml.UnmarshalStrict(b, d); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if errs := d.validate(); len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", file, errs.ToAggregate())
	}
	return d, nil
}

func (d *Description) validate() field.ErrorList {
	var errs field.ErrorList
	need := func(path *field.Path, value string) {
		if value == "" {
			errs = append(errs, field.Required(path, ""))
		}
	}
	need(field.NewPath("provider"), d.Provider)
	need(field.NewPath("class"), d.Class)
	if d.Runtime != "" && d.Runtime != TerraformCLI {
		errs = append(errs, field.NotSupported(field.NewPath("runtime"), d.Runtime, []Runtime{TerraformCLI}))
	}
	pc := field.NewPath("providerConfig")
	for name, value := range map[string]string{
		"apiVersion": d.ProviderConfig.APIVersion, "kind": d.ProviderConfig.Kind, "missing": d.ProviderConfig.Missing,
		"secretMissing": d.ProviderConfig.SecretMissing, "refused": d.ProviderConfig.Refused,
	} {
		need(pc.Child(name), value)
	}
	vms := 0
	for i, r := range d.Resources {
		p := field.NewPath("resources").Index(i)
		need(p.Child("apiVersion"), r.APIVersion)
		need(p.Child("kind"), r.Kind)
		if r.VM == nil {
			continue
		}
		vms++
		need(p.Child("vm", "userData", "path"), r.VM.UserData.Path)
		need(p.Child("vm", "tags", "path"), r.VM.Tags.Path)
		for j, a := range r.VM.Metadata {
			need(p.Child("vm", "metadata").Index(j).Child("url"), a.URL)
		}
	}
	if vms != 1 {
		errs = append(errs, field.Invalid(field.NewPath("resources"), vms, "one of them must have vm"))
	}
	if f := d.FailedAllocation; f != nil {
		need(field.NewPath("failedAllocation", "error"), f.Error)
	}
	for code, r := range d.Refusals {
		p := field.NewPath("refusals").Key(string(code))
		if !slices.Contains(Codes, code) {
			errs = append(errs, field.NotSupported(p, code, Codes))
		}
		if (r.Error == "") == (len(r.AtProvider) == 0) {
			errs = append(errs, field.Invalid(p, field.OmitValueType{}, "must have one of error and atProvider"))
		}
	}
	return errs
}

// Codes of refusals.
var Codes = []fn.ErrorCode{fn.ErrorCapacityExhausted, fn.ErrorQuotaExceeded, fn.ErrorInvalidRequest, fn.ErrorPermissionDenied, fn.ErrorThrottled}

// VM resource of the description.
func (d *Description) VM() *Resource {
	i := slices.IndexFunc(d.Resources, func(r Resource) bool { return r.VM != nil })
	return &d.Resources[i]
}
