package providers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A describedCloud is what the tests of this package know of a cloud: clouds/NAME.yaml.
type describedCloud struct {
	// CRD of the VM. The default is that of Drover's own provider.
	CRD string `json:"crd"`
	// CompanionCRDs are the CRDs of the companions that a VM may have.
	CompanionCRDs []string `json:"companionCRDs"`
	// FailureDomain is the field of forProvider that gets the failure domain of a Machine, "" if none does.
	FailureDomain string `json:"failureDomain"`
	// Observed is a VM that the provider created.
	Observed observation `json:"observed"`
	// Errors are texts of the provider's conditions, with their class.
	Errors []struct {
		Class string `json:"class"`
		Text  string `json:"text"`
	} `json:"errors"`
}

// An observation has the status.atProvider that a provider reports for a VM, and the fields that the Machine's status has
// then. They equal those that the cloud's controller manager writes to the Node, byte for byte.
type observation struct {
	AtProvider map[string]any `json:"atProvider"`
	ProviderID string         `json:"providerID"`
	Addresses  []string       `json:"addresses"`
}

// text of the status.atProvider.
func (o observation) text(t *testing.T) string {
	t.Helper()
	b, err := yaml.Marshal(o.AtProvider)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	described = readClouds()
	// crds of the clouds' VMs, by cloud.
	crds = map[string]string{}
	// companionCRDs of the clouds whose VMs have companions, by cloud.
	companionCRDs = map[string][]string{}
	// ofExamples are the clouds whose Composition is not in Drover's package, but in their example.
	ofExamples []string
)

func readClouds() map[string]describedCloud {
	files, err := filepath.Glob("clouds/*.yaml")
	if err != nil {
		panic(err)
	}
	out := map[string]describedCloud{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		d := describedCloud{}
		if err := yaml.UnmarshalStrict(b, &d); err != nil {
			panic(file + ": " + err.Error())
		}
		out[strings.TrimSuffix(filepath.Base(file), ".yaml")] = d
	}
	return out
}

func init() {
	for name, d := range described {
		crds[name] = d.CRD
		if d.CRD == "" {
			crds[name] = "../../../package/provider-" + name + "/crds/" + name + ".drover.dev_virtualmachines.yaml"
		}
		if len(d.CompanionCRDs) > 0 {
			companionCRDs[name] = d.CompanionCRDs
		}
		if _, err := os.Stat(root + "examples/" + name + "/composition.yaml"); err == nil {
			ofExamples = append(ofExamples, name)
		}
	}
}
