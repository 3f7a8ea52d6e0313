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
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A Description has all facts that the simulator needs of a cloud besides its Composition. Paths of
// files are relative to the root of the repository. Texts marked as templates are Go templates of
//
//	.vm      the managed resource: .vm.metadata.name, .vm.spec.forProvider.region
//	.id      its external name, once there is one
//	.name    the host name of the VM
//	.number  a number that no other VM of the cloud has
//	.hex     the same in 17 hexadecimal digits
//	.ip      the private address of the VM, once it has one; for a companion, such as a network
//	         interface, that of its VM, "" if there is none yet
//	.secondIP  the second private address of a VM, and .ipv6 its IPv6 address, with .ip
//	.publicIP  its public one
type Description struct {
	// Provider is spec.provider of the classes.
	Provider string `json:"provider"`
	// Runtime of the provider. The default passes the fields of a resource to the cloud unchanged.
	Runtime Runtime `json:"runtime,omitempty"`
	// Poll is how the provider observes a resource again that exists. The default is every 10
	// minutes, as in crossplane-runtime before v2.3.
	Poll Poll `json:"poll,omitempty"`
	// Composition is the file of the Composition, if it is not in Drover's package.
	Composition string `json:"composition,omitempty"`
	// Class is the file of the MachineClass that Machines are made of.
	Class string `json:"class"`
	// Companions are added to those of the class.
	Companions map[string]machinev1alpha1.Companion `json:"companions,omitempty"`
	// Rights are the files with the permissions that a user grants to Drover.
	Rights []string `json:"rights"`
	// CRDs are the files with the kinds of Resources, and with other kinds that a class needs.
	CRDs []string `json:"crds"`
	// ProviderConfig is the kind that holds the credentials.
	ProviderConfig ProviderConfig `json:"providerConfig"`
	// Resources are the kinds of managed resources that the Composition creates.
	Resources []Resource `json:"resources"`
	// Refusals are the errors or states of a VM that the cloud refuses, by error class.
	Refusals map[fn.ErrorCode]Refusal `json:"refusals"`
	// FailedAllocation is how the cloud fails to place a VM that it has accepted. Left out, the
	// cloud refuses a VM for which it has no room.
	FailedAllocation *FailedAllocation `json:"failedAllocation,omitempty"`
	// Cannot are the cases of the suite that the provider cannot have, by name, with the reason.
	Cannot map[string]string `json:"cannot,omitempty"`
}

// A Poll is how a provider observes a resource again that exists.
type Poll struct {
	// HonoursAnnotation means that the provider has crossplane-runtime v2.3 or later, which
	// respects the annotation crossplane.io/poll-interval.
	HonoursAnnotation bool `json:"honoursAnnotation,omitempty"`
	// UntilReady is the interval for a resource that is not Ready, as in provider-kubernetes. Such
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

// A Runtime is how a provider passes the fields of a resource to its cloud.
type Runtime string

// TerraformCLI writes the fields into a main.tf.json, where each string is a template. The
// provider's configuration in Go has WithIncludeList, and its main has NewWorkspaceStore.
const TerraformCLI Runtime = "TerraformCLI"

// A ProviderConfig is a kind that the simulator installs itself. It is cluster-scoped, and its
// spec.credentials.secretRef names the Secret with the credentials.
type ProviderConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Missing is the error of the provider if no configuration has the name, SecretMissing if there
	// is no Secret. Both are templates of .kind, .name and .namespace.
	Missing       string `json:"missing"`
	SecretMissing string `json:"secretMissing"`
	// Refused is the error of the cloud for wrong credentials.
	Refused string `json:"refused"`
}

// A Resource is a kind of managed resources.
type Resource struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Async is for providers that upjet generates: they report by the condition LastAsyncOperation.
	Async bool `json:"async,omitempty"`
	// ExternalName is a template of the name that the cloud gives to the resource. Left out, the
	// provider uses the name of the managed resource, which it knows before the creation.
	ExternalName string `json:"externalName,omitempty"`
	// Place is a template of .vm with all values, such as the resource group, by which the provider
	// finds the resource besides its external name. A resource that names another place finds
	// nothing.
	Place string `json:"place,omitempty"`
	// AtProvider is the status.atProvider that the provider reports. Its texts are templates.
	AtProvider map[string]any `json:"atProvider,omitempty"`
	// Starting has the fields of status.atProvider that differ while a created VM does not run yet.
	// Left out, a creation ends only when the VM runs: most Terraform providers wait for that.
	Starting map[string]any `json:"starting,omitempty"`
	// LateInitialized are the fields of spec.forProvider that the provider sets from the cloud if
	// they are missing, as soon as it has observed the resource.
	LateInitialized map[string]any `json:"lateInitialized,omitempty"`
	// TagsItself means that the provider adds tags of its own to the field with the tags, as
	// upjet's TagInitializer does. Of a companion, this field is spec.forProvider.tags.
	TagsItself bool `json:"tagsItself,omitempty"`
	// Gone has the fields of status.atProvider that differ once the VM was deleted at the cloud.
	// Left out, the provider no longer finds the VM, and the cloud-controller-manager deletes its
	// Node.
	Gone map[string]any `json:"gone,omitempty"`
	// Interrupted has the fields of status.atProvider that differ once the cloud stopped the spot
	// VM. Left out, the cloud stops none.
	Interrupted map[string]any `json:"interrupted,omitempty"`
	// AfterVM is for a companion that depends on the VM of its Machine, such as the attachment of a
	// disk. The cloud creates none without the VM, and no VM is deleted while it has one.
	AfterVM bool `json:"afterVM,omitempty"`
	// VM is left out for a companion, such as a network interface.
	VM *VM `json:"vm,omitempty"`
}

// GroupVersionKind returns the kind of the resource.
func (r Resource) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// A VM is how a cloud creates a VM from a resource.
type VM struct {
	// Name is a template of the host name. The default is the resource's name.
	Name string `json:"name,omitempty"`
	// UserData is the field with the user data.
	UserData UserData `json:"userData"`
	// Tags is the field with the tags.
	Tags Tags `json:"tags"`
	// Metadata are the answers of the metadata service.
	Metadata []Answer `json:"metadata,omitempty"`
	// ProviderID is a template of the providerID that the cloud-controller-manager writes to a Node
	// whose kubelet registers none.
	ProviderID string `json:"providerID,omitempty"`
}

// UserData is the field of a resource with the user data.
type UserData struct {
	// Path of the field. Its last [*] stands for any element of a list. The field holds the user
	// data, or the name of a Secret.
	Path string `json:"path"`
	// SecretKey is the key in the Secret that the field names.
	SecretKey string `json:"secretKey,omitempty"`
	// Base64 means that the user data is encoded in Base64.
	Base64 bool `json:"base64,omitempty"`
}

// Tags is the field of a resource with the tags.
type Tags struct {
	// Path of the field, which is a map or a list of words.
	Path string `json:"path"`
	// Separator of key and value in a word.
	Separator string `json:"separator,omitempty"`
	// OfAccount means that a tag is an object of the account and outlives the VMs that have it. So
	// a VM has only tags that it shares with many VMs, and is found by its name.
	OfAccount bool `json:"ofAccount,omitempty"`
}

// An Answer of a metadata service.
type Answer struct {
	// URL of the request.
	URL string `json:"url"`
	// Method is GET by default.
	Method string `json:"method,omitempty"`
	// Headers that the request must have. Their values are templates.
	Headers map[string]string `json:"headers,omitempty"`
	// Text is a template of the answer.
	Text string `json:"text"`
}

// A Refusal is an error of a creation, or the status.atProvider of a VM that is created and never
// runs.
type Refusal struct {
	Error      string         `json:"error,omitempty"`
	AtProvider map[string]any `json:"atProvider,omitempty"`
}

// Read reads a description from a file, and validates it.
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

// VM returns the resource of the description that is the VM.
func (d *Description) VM() *Resource {
	i := slices.IndexFunc(d.Resources, func(r Resource) bool { return r.VM != nil })
	return &d.Resources[i]
}
