// Package kubelet is the kubelet of a simulated VM: its configuration, read from the VM's files and
// command line (Plan), and its work (Run): TLS bootstrap, the Node and its Lease, and the pods
// bound to it.
package kubelet

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/cluster/cloud/internal/systemd"
	"github.com/drover-dev/drover/cluster/cloud/internal/userdata"
)

// unit is the name of the kubelet's systemd unit.
const unit = "kubelet.service"

// installer matches the script that downloads the kubelet, in the version of its argument or else
// of its environment. Without the script there is no kubelet on a VM.
var installer = regexp.MustCompile(`^([0-9]+-)?install-kubelet(\.sh)?$`)

// versionVariable is the environment variable with the kubelet's version.
const versionVariable = "KUBELET_VERSION"

// Facts are the properties of a VM that its cloud reports to it.
type Facts struct {
	ID, Name, Zone, Size, ProviderID string
	// BootID is status.nodeInfo.bootID of the Node: another one after each boot of the VM.
	BootID string
	// OSImage is status.nodeInfo.osImage of the Node.
	OSImage string
	IP      string
	// PodCIDR is the range of the addresses of pods.
	PodCIDR     string
	CPU, Memory resource.Quantity
}

// Plan is the configuration of a kubelet.
type Plan struct {
	Facts    Facts
	NodeName string
	// Version of the kubelet, such as v1.35.4.
	Version    string
	ProviderID string
	IP         string
	// Labels and Taints are the ones that the user data requests.
	Labels map[string]string
	Taints []corev1.Taint
	// Register means that the kubelet creates its Node.
	Register bool
	// Bootstrap is how to reach the API server with the bootstrap token.
	Bootstrap *rest.Config

	MaxPods       int64
	Reserved      corev1.ResourceList
	LeaseDuration time.Duration
	// StatusReport is the interval at which an unchanged Node status is written.
	StatusReport time.Duration
	// RotateCertificates means that the client certificate is renewed before it expires.
	RotateCertificates bool
	// ServingCertificate means that the kubelet requests one from the cluster.
	ServingCertificate bool
}

// NewPlan reads the configuration of a kubelet from the result of the user data. Its errors name
// the part that prevents the kubelet from running, as the VM's console would.
func NewPlan(in *userdata.Instance, facts Facts) (*Plan, error) {
	if !slices.ContainsFunc(in.Commands, startsKubelet) {
		return nil, fmt.Errorf(`%s: was never started: nothing runs "systemctl enable --now kubelet"`, unit)
	}
	argv, _, err := systemd.CommandLine(in.Files, unit)
	if err != nil {
		return nil, err
	}
	p := &Plan{Facts: facts, ProviderID: facts.ProviderID, IP: facts.IP}
	if p.Version, err = installed(in, argv[0]); err != nil {
		return nil, err
	}
	flags, err := parseFlags(argv[1:])
	if err != nil {
		return nil, err
	}
	if err := p.applyConfig(flags, in.Files); err != nil {
		return nil, err
	}
	if err := p.applyFlags(flags); err != nil {
		return nil, err
	}
	if p.NodeName, err = nodeName(flags["hostname-override"], in.Hostname, facts.Name); err != nil {
		return nil, err
	}
	if p.Bootstrap, err = bootstrapConfig(flags, in.Files); err != nil {
		return nil, err
	}
	return p, nil
}

func startsKubelet(command []string) bool {
	return slices.Contains(systemd.Started(command), unit)
}

// installed returns the version of the kubelet that was installed at the path in the unit's
// ExecStart.
func installed(in *userdata.Instance, executable string) (string, error) {
	i := slices.IndexFunc(in.Commands, func(c []string) bool { return installer.MatchString(path.Base(c[0])) })
	if i < 0 {
		return "", fmt.Errorf(`%s: %s: no such file: nothing runs "install-kubelet.sh VERSION"`, unit, executable)
	}
	c := in.Commands[i]
	if _, ok := in.Files[c[0]]; !ok {
		return "", fmt.Errorf("%s is missing: no kubelet was installed", c[0])
	}
	v := in.Environment[versionVariable]
	if len(c) > 1 {
		v = c[1]
	}
	if v == "" {
		return "", fmt.Errorf("%s: VERSION is missing: must be like v1.35.4", c[0])
	}
	if _, err := version.ParseSemantic(v); err != nil || !strings.HasPrefix(v, "v") {
		return "", fmt.Errorf("%s: invalid VERSION %q: must be like v1.35.4", c[0], v)
	}
	return v, nil
}

// nodeName returns the first name that is set, normalized as a kubelet does.
func nodeName(names ...string) (string, error) {
	var name string
	for _, n := range names {
		if name = strings.ToLower(strings.TrimSpace(n)); name != "" {
			break
		}
	}
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
		return "", fmt.Errorf("kubelet: invalid node name %q: %s", name, strings.Join(errs, ", "))
	}
	return name, nil
}

// applyFlags is called after applyConfig: flags take precedence over the configuration file.
func (p *Plan) applyFlags(flags map[string]string) error {
	if v, ok := flags["provider-id"]; ok {
		p.ProviderID = v
	}
	if v, ok := flags["node-ip"]; ok {
		p.IP, _, _ = strings.Cut(v, ",")
		if errs := validation.IsValidIP(nil, p.IP); len(errs) > 0 {
			return fmt.Errorf("kubelet: --node-ip: invalid value %q: must be an IP address", v)
		}
	}
	switch v := flags["cloud-provider"]; v {
	case "", "external":
	default:
		return fmt.Errorf("kubelet: --cloud-provider: invalid value %q: must be empty or external", v)
	}
	if v, ok := flags["register-node"]; ok {
		p.Register = v == "true"
	}
	if v, ok := flags["rotate-certificates"]; ok {
		p.RotateCertificates = v == "true"
	}
	if v, ok := flags["rotate-server-certificates"]; ok {
		p.ServingCertificate = v == "true"
	}
	var err error
	if p.Labels, err = parseLabels(flags["node-labels"]); err != nil {
		return err
	}
	if v, ok := flags["register-with-taints"]; ok {
		p.Taints, err = parseTaints(v)
	}
	return err
}
