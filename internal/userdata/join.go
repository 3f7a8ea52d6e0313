package userdata

import (
	_ "embed"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Input has all values that user data depends on.
type Input struct {
	// Hostname of the VM, and so the name of its Node.
	Hostname string
	// Version of the kubelet, like v1.35.4.
	Version string
	// DownloadURL is the location of kubelets, by version. See MachineClass.
	DownloadURL string

	// Profile of the operating system. Nil means that the image needs none.
	Profile *machinev1alpha1.OperatingSystemProfile
	// Parameters of the profile.
	Parameters map[string]string
	// Settings of the class beside its profile.
	Settings machinev1alpha1.OperatingSystemSettings
	// Architecture of the VM, empty if it is not known.
	Architecture string

	// Labels and taints that the Node shall have from its first moment. Labels that a
	// kubelet may not set are left out.
	Labels        map[string]string
	Taints        []machinev1alpha1.Taint
	StartupTaints []machinev1alpha1.Taint

	// Kubelet settings of the class.
	Kubelet machinev1alpha1.Kubelet

	// ExternalCloudProvider means that the cloud's controller manager initializes the
	// Node.
	ExternalCloudProvider bool
	// ProviderIDCommand is a shell command that prints the Node's providerID on the VM. The kubelet registers none
	// if it is empty.
	ProviderIDCommand string
}

// Paths on a VM.
const (
	pathBootstrapConfig = "/etc/kubernetes/bootstrap-kubelet.conf"
	pathCA              = "/etc/kubernetes/pki/ca.crt"
	pathKubeletConfig   = "/var/lib/kubelet/config.yaml"
	pathKubeletFlags    = "/etc/default/kubelet"
	kubeletUnitName     = "kubelet.service"
)

// New returns the document of a VM, with placeholders for values that only the Machine's controller knows. If
// fields of the Machine or of its class are invalid, its errors are a field.ErrorList with their paths: spec is
// the Machine's, class.spec the class's, profile.spec that of the class's profile.
func New(in Input) (Document, error) {
	kubelet := machinev1alpha1.DefaultKubeletPath
	if in.Profile != nil && in.Profile.Spec.Kubelet.Path != "" {
		kubelet = in.Profile.Spec.Kubelet.Path
	}
	flags, errs := kubeletFlags(in)
	if err := checkContent(in.DownloadURL, field.NewPath("class", "spec", "operatingSystem", "kubeletDownloadURL")); err != nil {
		errs = append(errs, err)
	}
	config, cerrs := kubeletConfiguration(in, field.NewPath("class", "spec", "kubelet"))
	if errs = append(errs, cerrs...); len(errs) > 0 {
		return Document{}, errs.ToAggregate()
	}
	d := draft{Document: Document{
		Hostname: in.Hostname,
		Files: []File{
			{Path: pathBootstrapConfig, Mode: 0o600, Content: bootstrapKubeconfig},
			{Path: pathCA, IsBase64: true, Content: clusterv1alpha1.PlaceholderCA},
			{Path: pathKubeletConfig, Content: config},
			{Path: pathKubeletFlags, Content: flags},
		},
		Units: []Unit{{Name: kubeletUnitName, Content: kubeletUnit(kubelet)}},
		Environment: map[string]string{
			"KUBELET_VERSION": in.Version,
			"KUBELET_URL":     strings.TrimRight(in.DownloadURL, "/"),
			"KUBELET_PATH":    kubelet,
			"KUBELET_CONFIG":  pathKubeletConfig,
		},
	}}
	if len(in.Settings.KubeletDigests) == 0 {
		d.join = append(d.join, Step{Name: "install-kubelet", Script: installKubelet})
	}
	if in.ProviderIDCommand != "" {
		d.join = append(d.join, Step{Name: "provider-id", Script: providerIDWriter(in.ProviderIDCommand)})
	}
	d.join = append(d.join, Step{Name: "start-kubelet", Script: startKubelet})
	if in.Profile != nil {
		if errs := d.applyProfile(in); len(errs) > 0 {
			return Document{}, errs.ToAggregate()
		}
	}
	if errs := d.applySettings(in); len(errs) > 0 {
		return Document{}, errs.ToAggregate()
	}
	return d.finished(), nil
}

// installKubelet puts the kubelet in place.
//
//go:embed scripts/install-kubelet.sh
var installKubelet string

// startKubelet is the last step.
//
//go:embed scripts/start-kubelet.sh
var startKubelet string
