package kubelet

import (
	"fmt"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// Defaults of a kubelet of v1.35.
const (
	defaultMaxPods      = 110
	defaultLeaseSeconds = 40
	defaultStatusReport = 5 * time.Minute
)

// applyConfig reads the KubeletConfiguration, as strictly as a kubelet does.
func (p *Plan) applyConfig(flags map[string]string, files map[string]string) error {
	c := &kubeletv1.KubeletConfiguration{}
	if file := flags["config"]; file != "" {
		text, ok := files[path.Clean(file)]
		if !ok {
			return fmt.Errorf("kubelet: --config: %s is missing", file)
		}
		if err := yaml.UnmarshalStrict([]byte(text), c); err != nil {
			return fmt.Errorf("kubelet: %s: %w", file, err)
		}
		if gv := kubeletv1.SchemeGroupVersion.String(); c.Kind != "KubeletConfiguration" || c.APIVersion != gv {
			return fmt.Errorf("kubelet: %s: is %s %s, must be %s KubeletConfiguration", file, c.APIVersion, c.Kind, gv)
		}
	}
	if ca := c.Authentication.X509.ClientCAFile; ca != "" {
		if _, ok := files[path.Clean(ca)]; !ok {
			return fmt.Errorf("kubelet: authentication.x509.clientCAFile: %s is missing", ca)
		}
	}

	if c.ProviderID != "" {
		p.ProviderID = c.ProviderID
	}
	p.Register = c.RegisterNode == nil || *c.RegisterNode
	p.Taints = c.RegisterWithTaints
	p.RotateCertificates = c.RotateCertificates
	p.ServingCertificate = c.ServerTLSBootstrap
	p.MaxPods = defaultMaxPods
	if c.MaxPods > 0 {
		p.MaxPods = int64(c.MaxPods)
	}
	p.LeaseDuration = defaultLeaseSeconds * time.Second
	if c.NodeLeaseDurationSeconds > 0 {
		p.LeaseDuration = time.Duration(c.NodeLeaseDurationSeconds) * time.Second
	}
	p.StatusReport = defaultStatusReport
	if c.NodeStatusReportFrequency.Duration > 0 {
		p.StatusReport = c.NodeStatusReportFrequency.Duration
	}
	var err error
	p.Reserved, err = reserved(c)
	return err
}

// reserved returns the part of a VM's capacity that pods cannot use.
func reserved(c *kubeletv1.KubeletConfiguration) (corev1.ResourceList, error) {
	out := corev1.ResourceList{}
	add := func(field, name, value string) error {
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return fmt.Errorf("kubelet: %s.%s: invalid value %q: must be a quantity like 100Mi", field, name, value)
		}
		sum := out[corev1.ResourceName(name)]
		sum.Add(q)
		out[corev1.ResourceName(name)] = sum
		return nil
	}
	for name, v := range c.SystemReserved {
		if err := add("systemReserved", name, v); err != nil {
			return nil, err
		}
	}
	for name, v := range c.KubeReserved {
		if err := add("kubeReserved", name, v); err != nil {
			return nil, err
		}
	}
	memory := "100Mi" // The default of a kubelet.
	if c.EvictionHard != nil {
		memory = c.EvictionHard["memory.available"]
	}
	// A percentage is valid here, but ignored for a simulated VM.
	if _, err := resource.ParseQuantity(memory); err == nil {
		return out, add("evictionHard", string(corev1.ResourceMemory), memory)
	}
	return out, nil
}
