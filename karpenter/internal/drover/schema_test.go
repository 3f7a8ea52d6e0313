package drover

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// TestTheViewHasTheFieldsOfTheSchemas compares the view with the CustomResourceDefinitions that Drover installs: a field that
// is renamed there would be empty here.
func TestTheViewHasTheFieldsOfTheSchemas(t *testing.T) {
	for plural, of := range map[string]any{
		"machines": Machine{}, "machineclasses": MachineClass{}, "clustermachineclasses": ClusterMachineClass{},
		"clusterproviderconfigs": ClusterProviderConfig{}, "providerconfigs": ProviderConfig{},
	} {
		t.Run(plural, func(t *testing.T) {
			group := "machine"
			if strings.HasSuffix(plural, "configs") {
				group = "cluster"
			}
			files, err := filepath.Glob("../../../package/*/crds/" + group + ".drover.dev_" + plural + ".yaml")
			if err != nil || len(files) != 1 {
				t.Fatalf("files %v, %v", files, err)
			}
			b, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(b, crd); err != nil {
				t.Fatal(err)
			}
			if v := crd.Spec.Versions; len(v) != 1 || v[0].Name != SchemeGroupVersion.Version {
				t.Fatalf("%d versions", len(v))
			}
			missing := map[string]bool{}
			compare(missing, "", reflect.TypeOf(of), *crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
			// The view of both kinds of classes is one.
			if plural == "machineclasses" {
				delete(missing, ".spec.allowedNamespaces")
			}
			for path := range missing {
				t.Errorf("the schema has no field %s", path)
			}
		})
	}
}

// leaves are types whose fields are not those of the view.
var leaves = map[reflect.Type]bool{
	reflect.TypeFor[metav1.TypeMeta](): true, reflect.TypeFor[metav1.ObjectMeta](): true, reflect.TypeFor[metav1.Condition](): true,
	reflect.TypeFor[corev1.ResourceList](): true, reflect.TypeFor[runtime.RawExtension](): true,
}

func compare(missing map[string]bool, path string, t reflect.Type, schema apiextensionsv1.JSONSchemaProps) {
	switch {
	case t.Kind() == reflect.Pointer:
		compare(missing, path, t.Elem(), schema)
	case leaves[t]:
	case t.Kind() == reflect.Slice:
		if schema.Items != nil && schema.Items.Schema != nil {
			compare(missing, path+"[]", t.Elem(), *schema.Items.Schema)
		}
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if leaves[f.Type] && (name == "" || name == "metadata") {
				continue
			}
			field, ok := schema.Properties[name]
			if !ok {
				missing[path+"."+name] = true
				continue
			}
			compare(missing, path+"."+name, f.Type, field)
		}
	case t.Kind() == reflect.String && schema.Type != "string", t.Kind() == reflect.Bool && schema.Type != "boolean":
		missing[fmt.Sprintf("%s of type %s", path, t)] = true
	}
}

// TestTheKeysAreThoseOfDrover looks for each key and value of the contract in Drover's declarations.
func TestTheKeysAreThoseOfDrover(t *testing.T) {
	files, err := filepath.Glob("../../../apis/*/v1alpha1/*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	all := ""
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all += string(b)
	}
	reference, err := os.ReadFile("../../../docs/reference/labels.md")
	if err != nil {
		t.Fatal(err)
	}
	hook, _, _ := strings.Cut(HookDrain, "/")
	for _, key := range []string{TaintUninitialized, FinalizerTerminator, AnnotationSkipDrain, hook + "/"} {
		if !strings.Contains(string(reference), "`"+key+"`") {
			t.Errorf("Drover has no key %q", key)
		}
	}
	for _, key := range []string{
		CodeCapacityExhausted, CodeQuotaExceeded, ConditionValid, ConditionInfrastructureReady, PhaseFailed,
		FailureCreateFailed, FailureCreateUnknown, FailureCapacityTimeout, FailureVMLost, FailureVMFailed, FailureNodeDeleted, FailureJoinTimeout,
		FailureNodeUnhealthy, StageHeld, StagePaused, StagePreDrainHooks, StageDraining, StageDetachingVolumes, StageDeletingNode,
		"InvalidRequest", "PermissionDenied", "ProviderConfigNotFound",
	} {
		if !strings.Contains(all, `"`+key+`"`) {
			t.Errorf("Drover declares no %q", key)
		}
	}
}

// TestTheKeysOfKarpenterAreThoseOfKubectl holds that kubectl drover finds the NodeClaims of Machines.
func TestTheKeysOfKarpenterAreThoseOfKubectl(t *testing.T) {
	b, err := os.ReadFile("../../../internal/kubectl/view/nodeclaim.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{LabelNodeClaim, AnnotationNodeClaimUID} {
		if !strings.Contains(string(b), `"`+key+`"`) {
			t.Errorf("kubectl drover does not read %q", key)
		}
	}
}
