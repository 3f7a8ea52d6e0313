package userdata

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Input is all that user data is made of.
type Input struct {
	// Hostname of the VM, and so the name of its Node.
	Hostname string
	// Version of the kubelet, like v1.35.4.
	Version string
	// DownloadURL is where kubelets are, by version. See MachineClass.
	DownloadURL string

	// Labels and taints that the Node shall have from its first moment. Labels that a
	// kubelet may not set are left out.
	Labels        map[string]string
	Taints        []machinev1alpha1.Taint
	StartupTaints []machinev1alpha1.Taint

	// Kubelet settings of the class.
	Kubelet machinev1alpha1.Kubelet

	// ExternalCloudProvider means that the cloud's controller manager initialises the
	// Node.
	ExternalCloudProvider bool
	// ProviderIDCommand is what a shell runs on the VM to learn the Node's providerID.
	// The kubelet registers none if it is empty.
	ProviderIDCommand string
}

// Where things are on a VM.
const (
	pathBootstrapConfig = "/etc/kubernetes/bootstrap-kubelet.conf"
	pathCA              = "/etc/kubernetes/pki/ca.crt"
	pathKubeletConfig   = "/var/lib/kubelet/config.yaml"
	pathKubeletFlags    = "/etc/default/kubelet"
	pathKubeletUnit     = "/etc/systemd/system/kubelet.service"
	pathInstaller       = "/opt/drover/install-kubelet.sh"
	pathProviderID      = "/opt/drover/provider-id.sh"
)

// A cloudConfig is the part of cloud-init's #cloud-config that Drover uses.
type cloudConfig struct {
	Hostname   string     `json:"hostname"`
	WriteFiles []file     `json:"write_files"`
	RunCmd     [][]string `json:"runcmd"`
}

type file struct {
	Path        string `json:"path"`
	Permissions string `json:"permissions"`
	Encoding    string `json:"encoding,omitempty"`
	Content     string `json:"content"`
}

// CloudInit renders a #cloud-config document, with placeholders for values that only the
// Machine's controller knows. Its errors are a field.ErrorList
// when fields of the Machine or of its class are to blame, with their paths in them:
// spec is the Machine's, class.spec the class's.
func CloudInit(in Input) ([]byte, error) {
	flags, errs := kubeletFlags(in)
	config, cerrs := kubeletConfiguration(in, field.NewPath("class", "spec", "kubelet"))
	if errs = append(errs, cerrs...); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}

	c := cloudConfig{
		Hostname: in.Hostname,
		WriteFiles: []file{
			{Path: pathBootstrapConfig, Permissions: "0600", Content: bootstrapKubeconfig},
			{Path: pathCA, Permissions: "0644", Encoding: "b64", Content: clusterv1alpha1.PlaceholderCA},
			{Path: pathKubeletConfig, Permissions: "0644", Content: config},
			{Path: pathKubeletFlags, Permissions: "0644", Content: flags},
			{Path: pathKubeletUnit, Permissions: "0644", Content: kubeletUnit},
			{Path: pathInstaller, Permissions: "0755", Content: installer(in.DownloadURL)},
		},
		RunCmd: [][]string{
			{pathInstaller, in.Version},
			{"systemctl", "daemon-reload"},
		},
	}
	if in.ProviderIDCommand != "" {
		c.WriteFiles = append(c.WriteFiles, file{Path: pathProviderID, Permissions: "0755", Content: providerIDWriter(in.ProviderIDCommand)})
		c.RunCmd = append(c.RunCmd, []string{pathProviderID, pathKubeletConfig})
	}
	c.RunCmd = append(c.RunCmd, []string{"systemctl", "enable", "--now", "kubelet"})

	doc, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the cloud-init document: %w", err)
	}
	return bytes.Join([][]byte{[]byte("#cloud-config\n"), doc}, nil), nil
}
