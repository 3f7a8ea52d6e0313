package kubelet

import (
	"testing"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	drover "github.com/drover-dev/drover/internal/userdata"

	"github.com/drover-dev/drover/cluster/cloud/internal/userdata"
)

// TestDroversUserDataStartsAKubelet checks that the simulated VM understands Drover's user data in
// each format: it must find the kubelet where a real VM finds it.
func TestDroversUserDataStartsAKubelet(t *testing.T) {
	d, err := drover.New(drover.Input{Hostname: "worker-1", Version: "v1.35.4", DownloadURL: "https://dl.k8s.io/release", Labels: map[string]string{"tier": "web"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []machinev1alpha1.ProvisioningFormat{machinev1alpha1.CloudInit, machinev1alpha1.Ignition} {
		t.Run(string(format), func(t *testing.T) {
			template, err := d.Encode(format)
			if err != nil {
				t.Fatal(err)
			}
			filled, err := drover.Filling{Token: "abcdef.0123456789abcdef", Server: "https://[fd00::1]:6443", CA: []byte(testCA), UID: "u", ConfigUID: "c"}.Fill(string(template), drover.Form{})
			if err != nil {
				t.Fatal(err)
			}
			in, err := userdata.Parse(filled)
			if err != nil {
				t.Fatal(err)
			}
			p, err := NewPlan(in, facts)
			if err != nil {
				t.Fatal(err)
			}
			if p.NodeName != "worker-1" || p.Version != "v1.35.4" || p.Bootstrap.Host != "https://[fd00::1]:6443" || p.Bootstrap.BearerToken != "abcdef.0123456789abcdef" {
				t.Errorf("node %s, version %s, server %s, token %s", p.NodeName, p.Version, p.Bootstrap.Host, p.Bootstrap.BearerToken)
			}
			if p.Labels["tier"] != "web" || p.Labels[clusterv1alpha1.LabelJoinToken] != "u" {
				t.Errorf("labels %v", p.Labels)
			}
		})
	}
}
