package bootstrap

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/osprofile"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/test/examples"
)

const root = "../../../"

// preparedImages are the examples with an image that has containerd, or with a simulated one.
var preparedImages = []string{"local", "local-real"}

// TestEachExampleOfAClassCanJoin renders each class with the Composition of its cloud. Its profile
// must exist and serve current kubelets, and the cloud must accept the format and the size.
func TestEachExampleOfAClassCanJoin(t *testing.T) {
	files, err := filepath.Glob(root + "examples/*/machineclass*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("examples: %q, %v", files, err)
	}
	for _, file := range files {
		folder := filepath.Base(filepath.Dir(file))
		t.Run(folder+"/"+filepath.Base(file), func(t *testing.T) {
			class := &machinev1alpha1.MachineClass{}
			readInto(t, file, class)
			name := class.Spec.OperatingSystem.Profile
			profile := osprofile.BuiltIn(name)
			if (profile == nil) != slices.Contains(preparedImages, folder) {
				t.Fatalf("the profile %q is not built in, or the image needs none", name)
			}
			composition := compositionOf(t, class.Spec.Provider, filepath.Dir(file))
			for _, version := range []string{"v1.33.1", "v1.35.4", "v1.36.0"} {
				m := machine("")
				m.Spec.Version = version
				if p := Check(composition, Observed{Machine: m, Class: class, Profile: profile}); p != nil {
					t.Errorf("kubelet %s: %s: %s", version, p.Reason, p.Message)
				}
			}
		})
	}
}

// compositionOf returns the Composition of a provider, from Drover or else from the example.
func compositionOf(t *testing.T, provider, example string) plan.Object {
	t.Helper()
	file := root + "apis/machine/compositions/machine-" + provider + ".yaml"
	if _, err := os.Stat(file); err != nil {
		file = filepath.Join(example, "composition.yaml")
	}
	composition := plan.Object{Unstructured: &unstructured.Unstructured{}}
	readInto(t, file, &composition.Object)
	if plan.InputOf(composition, "Bootstrap") == nil {
		t.Fatalf("%s has no input Bootstrap", file)
	}
	return composition
}

// readInto fails if the file has a field that the type does not have.
func readInto(t *testing.T, file string, into any) {
	t.Helper()
	b, err := examples.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(b, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
