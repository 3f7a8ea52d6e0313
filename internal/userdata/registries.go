package userdata

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletconfigv1 "k8s.io/kubelet/config/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// dirRegistries is the folder from which containerd 1 and 2 read a folder per registry.
	dirRegistries = "/etc/containerd/certs.d"
	// pathCredentialProviders is the configuration of the kubelet's credential providers.
	pathCredentialProviders = "/etc/kubernetes/credential-providers.yaml"
)

var registryName = regexp.MustCompile(`^(_default|[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?)$`)

// applyRegistryMirrors writes a hosts.toml per registry. containerd reads it at each pull.
func (d *draft) applyRegistryMirrors(in Input, at *field.Path) field.ErrorList {
	at = at.Child("registryMirrors")
	if len(in.Settings.RegistryMirrors) == 0 {
		return nil
	}
	if in.Profile == nil {
		return needsProfile(at, "without one Drover does not write containerd's configuration, and containerd may not read "+dirRegistries)
	}
	var errs field.ErrorList
	for i, r := range in.Settings.RegistryMirrors {
		at := at.Index(i)
		if !registryName.MatchString(r.Registry) {
			errs = append(errs, field.Invalid(at.Child("registry"), r.Registry, "must be a host as images name it, with its port if they have one, or _default"))
			continue
		}
		if len(r.Mirrors) == 0 {
			errs = append(errs, field.Required(at.Child("mirrors"), "a registry without a mirror needs no entry"))
		}
		for j, m := range r.Mirrors {
			if err := checkURL(m.URL, at.Child("mirrors").Index(j).Child("url")); err != nil {
				errs = append(errs, err)
			}
		}
		f := File{Path: path.Join(dirRegistries, r.Registry, "hosts.toml"), Content: hosts(r.Mirrors)}
		if err := d.addFile(f, at.Child("registry")); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// hosts returns the mirrors of a registry in containerd's form. containerd tries the registry itself after
// them.
func hosts(mirrors []machinev1alpha1.RegistryEndpoint) string {
	var tables []string
	for _, m := range mirrors {
		table := fmt.Sprintf("[host.%s]\n  capabilities = [\"pull\", \"resolve\"]\n", quote(strings.TrimRight(m.URL, "/")))
		if m.OverridePath {
			table += "  override_path = true\n"
		}
		if m.InsecureSkipVerify {
			table += "  skip_verify = true\n"
		}
		tables = append(tables, table)
	}
	return strings.Join(tables, "\n")
}

var imageName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@sha256:[0-9a-f]{64})?$`)

// applySandboxImage checks the image, which applyProfile writes into containerd's
// configuration.
func (d *draft) applySandboxImage(in Input, at *field.Path) field.ErrorList {
	at = at.Child("sandboxImage")
	switch {
	case in.Settings.SandboxImage == "":
	case in.Profile == nil:
		return needsProfile(at, "without one Drover does not write containerd's configuration")
	case !imageName.MatchString(in.Settings.SandboxImage):
		return field.ErrorList{field.Invalid(at, in.Settings.SandboxImage, "must be an image with its registry, like registry.k8s.io/pause:3.10")}
	}
	return nil
}

var binDir = regexp.MustCompile(`^/[A-Za-z0-9._/-]+$`)

// binDirOf returns the folder of image credential providers.
func binDirOf(p machinev1alpha1.ImageCredentialProviders) string {
	return cmp.Or(p.BinDir, machinev1alpha1.DefaultCredentialProviderDir)
}

// applyCredentialProviders writes the configuration of the kubelet's image credential
// providers, which kubeletFlags names.
func (d *draft) applyCredentialProviders(in Input, at *field.Path) field.ErrorList {
	p := in.Settings.ImageCredentialProviders
	if p == nil {
		return nil
	}
	at = at.Child("imageCredentialProviders")
	dir := binDirOf(*p)
	if !binDir.MatchString(dir) || path.Clean(dir) != dir {
		return field.ErrorList{field.Invalid(at.Child("binDir"), dir, "must be an absolute path of letters, digits and . _ -, without . and ..")}
	}
	content, names, errs := credentialProviders(p.Config.Raw, at.Child("config"))
	if len(errs) > 0 {
		return errs
	}
	d.Files = append(d.Files, File{Path: pathCredentialProviders, Content: content})
	return d.addProviderDownloads(*p, names, at.Child("downloads"))
}

const credentialProviderKind = "CredentialProviderConfig"

// credentialProviderVersions are the versions that kubelets support for providers.
var credentialProviderVersions = []string{"credentialprovider.kubelet.k8s.io/v1", "credentialprovider.kubelet.k8s.io/v1beta1", "credentialprovider.kubelet.k8s.io/v1alpha1"}

// credentialProviders checks a configuration as a kubelet does, which does not start with a
// wrong one. It returns the configuration and the names of its providers.
func credentialProviders(raw []byte, at *field.Path) (string, []string, field.ErrorList) {
	c := &kubeletconfigv1.CredentialProviderConfig{}
	kind := kubeletconfigv1.SchemeGroupVersion.String() + " " + credentialProviderKind
	strict, err := kjson.UnmarshalStrict(raw, c)
	if err != nil {
		strict = []error{err}
	}
	var errs field.ErrorList
	for _, err := range strict {
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("must be fields of a %s: %v", kind, err)))
	}
	if c.TypeMeta != (metav1.TypeMeta{}) && c.APIVersion+" "+c.Kind != kind {
		errs = append(errs, field.NotSupported(at.Child("apiVersion"), c.APIVersion+" "+c.Kind, []string{kind}))
	}
	if len(errs) > 0 {
		return "", nil, errs
	}
	names, errs := checkProviders(c.Providers, at.Child("providers"))
	if len(errs) > 0 {
		return "", nil, errs
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return "", nil, field.ErrorList{field.InternalError(at, err)}
	}
	fields["apiVersion"], fields["kind"] = kubeletconfigv1.SchemeGroupVersion.String(), credentialProviderKind
	content, err := yaml.Marshal(fields)
	if err != nil {
		return "", nil, field.ErrorList{field.InternalError(at, err)}
	}
	if err := checkContent(string(content), at); err != nil {
		return "", nil, field.ErrorList{err}
	}
	if err := checkSecret(string(content), at); err != nil {
		return "", nil, field.ErrorList{err}
	}
	return string(content), names, nil
}

func checkProviders(providers []kubeletconfigv1.CredentialProvider, at *field.Path) ([]string, field.ErrorList) {
	var errs field.ErrorList
	var names []string
	if len(providers) == 0 {
		errs = append(errs, field.Required(at, "there must be at least one"))
	}
	for i, p := range providers {
		at := at.Index(i)
		switch {
		case p.Name == "":
			errs = append(errs, field.Required(at.Child("name"), "it is the name of the executable"))
		case p.Name == "." || p.Name == ".." || strings.ContainsAny(p.Name, "/ \t\r\n\\"):
			errs = append(errs, field.Invalid(at.Child("name"), p.Name, "must be a file name without blanks"))
		case slices.Contains(names, p.Name):
			errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
		}
		names = append(names, p.Name)
		if len(p.MatchImages) == 0 {
			errs = append(errs, field.Required(at.Child("matchImages"), "the provider would never be asked"))
		}
		switch {
		case p.DefaultCacheDuration == nil:
			errs = append(errs, field.Required(at.Child("defaultCacheDuration"), "the kubelet has no default for it"))
		case p.DefaultCacheDuration.Duration < 0:
			errs = append(errs, field.Invalid(at.Child("defaultCacheDuration"), p.DefaultCacheDuration.Duration.String(), "must be 0s or more"))
		}
		if !slices.Contains(credentialProviderVersions, p.APIVersion) {
			errs = append(errs, field.NotSupported(at.Child("apiVersion"), p.APIVersion, credentialProviderVersions))
		}
	}
	return names, errs
}
