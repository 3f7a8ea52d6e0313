package tables

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	_ "k8s.io/kubernetes/pkg/features"
)

var update = flag.Bool("update", false, "write the tables of this version of Kubernetes")

// The kubelet adds these feature gates to those of the imported packages.
func init() { utilruntime.Must(logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate)) }

func TestTheTableOfFeatureGatesIsThatOfTheKubelet(t *testing.T) {
	var lines []string
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		line := string(name)
		if spec.LockToDefault {
			line = fmt.Sprintf("%s %t", name, spec.Default)
		}
		lines = append(lines, line)
	}
	checkTable(t, "featuregates", lines)
}

func TestTheTableOfFieldsIsThatOfTheKubelet(t *testing.T) {
	var lines []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[kubeletv1.KubeletConfiguration]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			lines = append(lines, name)
		}
	}
	checkTable(t, "testdata/kubeletfields", lines)
}

// checkTable compares lines with the file of this version in a folder of internal/userdata.
func checkTable(t *testing.T, folder string, lines []string) {
	t.Helper()
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	file := filepath.Join("../../../internal/userdata", folder, "v"+version.DefaultKubeBinaryVersion+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s is not of this version, -update writes it: %v", file, err)
	}
}
