package providers

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

const (
	envKubeconfig = "KUBECONFIG_UNDER_TEST"
	// envCRDs names a folder with the complete CRDs of the providers.
	envCRDs = "DROVER_PROVIDER_CRDS"
)

// TestAnAPIServerTakesTheVMs creates the VMs of the examples' classes on an API server with the
// CRDs but without controllers. Unknown fields are an error in this test. Crossplane ignores
// them.
func TestAnAPIServerTakesTheVMs(t *testing.T) {
	kubeconfig := os.Getenv(envKubeconfig)
	if kubeconfig == "" {
		t.Skipf("%s names no API server: make integration starts one", envKubeconfig)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := extv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for cloud, file := range crds {
		t.Run(cloud+"/Trimmed", func(t *testing.T) { takes(t, c, cloud, filepath.Join("crds", file)) })
		t.Run(cloud+"/Whole", func(t *testing.T) {
			whole := filepath.Join(os.Getenv(envCRDs), file)
			if _, err := os.Stat(whole); os.Getenv(envCRDs) == "" || err != nil {
				t.Skipf("%s names no folder with %s: only the trimmed CRD is tested", envCRDs, file)
			}
			takes(t, c, cloud, whole)
		})
	}
}

func takes(t *testing.T, c client.Client, cloud, file string) {
	install(t, c, file)
	p := newPlane(t, cloud, "")
	takesObject(t, c, rendered(t, p))
	for _, crd := range companionCRDs[cloud] {
		beside := filepath.Join(filepath.Dir(file), crd)
		if _, err := os.Stat(beside); err != nil {
			t.Logf("there is no %s: its kind is tested with the trimmed CRD alone", beside)
			continue
		}
		install(t, c, beside)
	}
	for name, o := range p.Composed {
		if machinev1alpha1.IsCompanion(name) {
			takesObject(t, c, o)
		}
	}
}

func takesObject(t *testing.T, c client.Client, o *unstructured.Unstructured) {
	t.Helper()
	vm := o.DeepCopy()
	vm.SetNamespace("default")
	vm.SetOwnerReferences(nil)
	unstructured.RemoveNestedField(vm.Object, "metadata", "uid")
	create := func(o *unstructured.Unstructured) error {
		return c.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict"))
	}
	if err := create(vm.DeepCopy()); err != nil {
		t.Errorf("%v\n%v", err, vm.Object["spec"])
	}
	// The test can fail: a wrong field is an error.
	wrong := vm.DeepCopy()
	if err := unstructured.SetNestedField(wrong.Object, "sweet", "spec", "forProvider", "flavour"); err != nil {
		t.Fatal(err)
	}
	if err := create(wrong); err == nil || !strings.Contains(err.Error(), "flavour") {
		t.Errorf("an unknown field: %v", err)
	}
}

// install a CRD, and wait until the API server serves its kind.
func install(t *testing.T, c client.Client, file string) {
	t.Helper()
	crd := readCRD(t, file)
	there := &extv1.CustomResourceDefinition{}
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, patience.Limit(), true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(crd), there)
		if kerrors.IsNotFound(err) {
			return true, c.Create(ctx, crd)
		}
		if err != nil {
			return false, err
		}
		there.Spec = crd.Spec
		if err := c.Update(ctx, there); kerrors.IsConflict(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
	list.SetKind(crd.Spec.Names.ListKind)
	err = wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, patience.Limit(), true, func(ctx context.Context) (bool, error) {
		return c.List(ctx, list) == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: the API server does not serve it", file)
	}
}
