package kubelet

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubeletscheme "k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
)

// rendered matches the golden files of cloud-init documents.
const rendered = "../../../internal/userdata/testdata/*.yaml"

// A kubelet does not start with an unknown flag or with an invalid value in its configuration. With -modfile
// the test has the kubelet of another version.
func TestAKubeletAcceptsTheConfigurationAndTheFlagsThatDroverRenders(t *testing.T) {
	documents, err := filepath.Glob(rendered)
	if err != nil || len(documents) == 0 {
		t.Fatalf("no documents in %s: %v", rendered, err)
	}
	for _, file := range documents {
		t.Run(filepath.Base(file), func(t *testing.T) {
			files := writtenBy(t, file)
			checkConfiguration(t, files["/var/lib/kubelet/config.yaml"])
			checkFlags(t, files["/etc/systemd/system/kubelet.service"], files["/etc/default/kubelet"])
		})
	}
}

// writtenBy returns the files that a document of cloud-init writes, by path.
func writtenBy(t *testing.T, document string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		WriteFiles []struct{ Path, Content string } `json:"write_files"`
	}
	if err := yaml.Unmarshal(b, &config); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range config.WriteFiles {
		out[f.Path] = f.Content
	}
	return out
}

// checkConfiguration decodes and validates a KubeletConfiguration. Unlike a kubelet, which ignores unknown
// fields, it fails for them.
func checkConfiguration(t *testing.T, text string) {
	t.Helper()
	_, codecs, err := kubeletscheme.NewSchemeAndCodecs(serializer.EnableStrict)
	if err != nil {
		t.Fatal(err)
	}
	c := &kubeletconfig.KubeletConfiguration{}
	if _, _, err := codecs.UniversalDecoder().Decode([]byte(text), nil, c); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	// Otherwise the validation fails on a computer with cgroup v1.
	c.FailCgroupV1 = false
	if err := validation.ValidateKubeletConfiguration(c, utilfeature.DefaultFeatureGate); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// checkFlags parses the flags of kubelet.service, and those of its environment file.
func checkFlags(t *testing.T, unit, environment string) {
	t.Helper()
	_, command, found := strings.Cut(unit, "/kubelet ")
	command, _, ends := strings.Cut(command, " $KUBELET_EXTRA_ARGS\n")
	if !found || !ends {
		t.Fatalf("no flags in %q", unit)
	}
	_, quoted, found := strings.Cut(strings.TrimSpace(environment), "KUBELET_EXTRA_ARGS=")
	extra, err := strconv.Unquote(quoted)
	if !found || err != nil {
		t.Fatalf("no flags in %q: %v", environment, err)
	}
	config, err := options.NewKubeletConfiguration()
	if err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	options.NewKubeletFlags().AddFlags(fs)
	options.AddKubeletConfigFlags(fs, config)
	options.AddGlobalFlags(fs)
	args := append(strings.Fields(command), strings.Fields(extra)...)
	if err := fs.Parse(args); err != nil {
		t.Errorf("%s: %v", strings.Join(args, " "), err)
	}
}
