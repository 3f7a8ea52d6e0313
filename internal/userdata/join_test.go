package userdata

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

func input(change ...func(*Input)) Input {
	in := Input{
		Hostname:    "pool-a-x7k2p",
		Version:     "v1.35.4",
		DownloadURL: "https://dl.k8s.io/release",
		Kubelet:     machinev1alpha1.Kubelet{ClusterDomain: "cluster.local"},
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

func configuration(json string) func(*Input) {
	return func(in *Input) { in.Kubelet.Configuration = &runtime.RawExtension{Raw: []byte(json)} }
}

func ofVersion(kubelet string) func(*Input) {
	return func(in *Input) { in.Version = kubelet }
}

func TestDocumentsAreThoseOfTheGoldenFiles(t *testing.T) {
	cases := map[string]Input{
		"minimal": input(),
		"full": input(func(in *Input) {
			in.DownloadURL = "http://mirror.example.org/it's here/"
			in.Labels = map[string]string{
				"pool":                               "a",
				"node.kubernetes.io/pool":            "a",
				"topology.kubernetes.io/zone":        "zone-a",
				"node-role.kubernetes.io/worker":     "",
				"x.node-restriction.kubernetes.io/y": "z",
			}
			in.Taints = []machinev1alpha1.Taint{
				{Key: "dedicated", Value: "batch", Effect: "NoSchedule"},
				{Key: "example.org/fresh", Effect: "NoExecute"},
			}
			in.StartupTaints = []machinev1alpha1.Taint{{Key: "example.org/network-missing", Effect: "NoSchedule"}}
			in.Kubelet.ClusterDNS = []string{"10.96.0.10"}
			in.Kubelet.MaxPods = ptr.To[int32](50)
		}, configuration(`{"maxPods": 60, "serverTLSBootstrap": false, "systemReserved": {"memory": "1Gi"}, "registerWithTaints": [{"key": "class", "effect": "NoSchedule"}, {"key": "dedicated", "value": "class", "effect": "NoSchedule"}], "authentication": {"webhook": {"cacheTTL": "2m"}}}`)),
	}
	for name, in := range cases {
		for format, ending := range endings {
			t.Run(name+"/"+string(format), func(t *testing.T) {
				compareGolden(t, name+ending, encoded(t, document(t, in), format))
			})
		}
	}
}

// endings of golden files, by format.
var endings = map[machinev1alpha1.ProvisioningFormat]string{
	machinev1alpha1.CloudInit: ".yaml",
	machinev1alpha1.Ignition:  ".ign",
}

func document(t *testing.T, in Input) Document {
	t.Helper()
	d, err := New(in)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func encoded(t *testing.T, d Document, format machinev1alpha1.ProvisioningFormat) []byte {
	t.Helper()
	b, err := d.Encode(format)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// compareGolden holds got against a file of testdata. An Ignition document is indented
// there, to be read.
func compareGolden(t *testing.T, file string, got []byte) {
	t.Helper()
	if json.Valid(got) {
		b := bytes.Buffer{}
		if err := json.Indent(&b, got, "", " "); err != nil {
			t.Fatal(err)
		}
		got = append(b.Bytes(), '\n')
	}
	golden := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got, go test -update writes the golden file anew:\n%s", diff)
	}
}

func TestWhatAKubeletMayNotSetIsNotAmongItsFlags(t *testing.T) {
	got := files(t, input(func(in *Input) {
		in.Labels = map[string]string{"node-role.kubernetes.io/worker": "", "pool": "a"}
	}))[pathKubeletFlags]
	want := "KUBELET_EXTRA_ARGS=\"--hostname-override=pool-a-x7k2p --node-labels=cluster.drover.dev/config=$(config.uid),cluster.drover.dev/join-token=$(joinToken.uid),pool=a\"\n"
	if got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

func TestConfigurationOfTheClassWinsOverTheDefaults(t *testing.T) {
	config := map[string]any{}
	in := input(configuration(`{"authentication": {"anonymous": {"enabled": true}}, "readOnlyPort": 10255, "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}`))
	if err := yaml.Unmarshal([]byte(files(t, in)[pathKubeletConfig]), &config); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"anonymous": map[string]any{"enabled": true},
		"webhook":   map[string]any{"enabled": true},
		"x509":      map[string]any{"clientCAFile": pathCA},
	}
	if diff := cmp.Diff(want, config["authentication"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if config["readOnlyPort"] != float64(10255) {
		t.Errorf("readOnlyPort: want 10255, got %v", config["readOnlyPort"])
	}
}

func TestAKubeletHasTheFieldsOfItsVersion(t *testing.T) {
	cases := map[string]struct {
		version, configuration, refused string
	}{
		"AFieldOfV136IsRefusedInV135":     {"v1.35.4", `{"tlsCurvePreferences": [29]}`, "from v1.36 on, and spec.version is v1.35.4"},
		"AFieldOfV136IsTakenInV136":       {"v1.36.0", `{"tlsCurvePreferences": [29]}`, ""},
		"AnotherFieldOfV136IsTakenInV137": {"v1.37.2", `{"memoryReservationPolicy": "TieredReservation"}`, ""},
		"AFieldOfV137IsRefusedInV136":     {"v1.36.3", `{"defaultPodSysctls": {"net.ipv4.ip_forward": "1"}}`, "from v1.37 on, and spec.version is v1.36.3"},
		"AFieldOfV137IsTakenInV137":       {"v1.37.0-rc.1", `{"defaultPodSysctls": {"net.ipv4.ip_forward": "1"}}`, ""},
		"AnOldFieldIsTakenInEachVersion":  {"v1.37.2", `{"maxPods": 20}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(ofVersion(tc.version), configuration(tc.configuration))
			if tc.refused != "" {
				if _, err := New(in); err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("want an error with %q, got %v", tc.refused, err)
				}
				return
			}
			var want, got map[string]any
			if err := errors.Join(yaml.Unmarshal([]byte(tc.configuration), &want), yaml.Unmarshal([]byte(files(t, in)[pathKubeletConfig]), &got)); err != nil {
				t.Fatal(err)
			}
			for field, value := range want {
				if diff := cmp.Diff(value, got[field]); diff != "" {
					t.Errorf("%s -want +got:\n%s", field, diff)
				}
			}
		})
	}
}

func TestAKubeletStartsWithTheFeatureGatesOfAClass(t *testing.T) {
	cases := map[string]struct {
		version, gates, refused string
	}{
		"AGateOfItsVersion":                   {"v1.36.3", `{"SidecarContainers": true}`, ""},
		"AGateThatWasRemoved":                 {"v1.37.2", `{"SidecarContainers": true}`, "class.spec.kubelet.configuration.featureGates[SidecarContainers]: Forbidden: kubelets of v1.37 no longer have this feature gate, and do not start with it"},
		"AGateThatWasRemovedBeforeTheNewest":  {"v1.40.0", `{"MemoryManager": true}`, "kubelets of v1.37 no longer have this feature gate"},
		"AGateThatIsNotLockedYet":             {"v1.35.4", `{"UserNamespacesSupport": false}`, ""},
		"AGateThatIsLockedToAnotherValue":     {"v1.36.3", `{"UserNamespacesSupport": false}`, "class.spec.kubelet.configuration.featureGates[UserNamespacesSupport]: Invalid value: false: kubelets of v1.36 lock this feature gate to true"},
		"AGateThatIsLockedToItsValue":         {"v1.36.3", `{"UserNamespacesSupport": true}`, ""},
		"AGateThatNoVersionHas":               {"v1.37.2", `{"VendorsOwn": true}`, ""},
		"AGateThatIsLockedInALaterVersion":    {"v1.34.0", `{"UserNamespacesSupport": false}`, ""},
		"AGateThatWasRemovedInALaterVersion":  {"v1.34.0", `{"SidecarContainers": true}`, ""},
		"AGateThatIsNewInALaterVersionIsLeft": {"v1.35.4", `{"DefaultPodSysctls": true}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := New(input(ofVersion(tc.version), configuration(`{"featureGates": `+tc.gates+`}`)))
			if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
				t.Errorf("want an error with %q, got %v", tc.refused, err)
			}
		})
	}
}

func TestBadInputIsNamed(t *testing.T) {
	cases := map[string]struct {
		in   Input
		want []string
	}{
		"AFieldThatKubeletsDoNotHave": {
			in:   input(configuration(`{"maxPodz": 3}`)),
			want: []string{"class.spec.kubelet.configuration", `unknown field "maxPodz"`, "kubelet.config.k8s.io/v1beta1"},
		},
		"AFieldOfLaterKubelets": {
			in:   input(configuration(`{"memoryReservationPolicy": "None"}`)),
			want: []string{"class.spec.kubelet.configuration.memoryReservationPolicy: Forbidden: kubelets have this field from v1.36 on, and spec.version is v1.35.4"},
		},
		"AFieldOfLaterKubeletsOfAnotherType": {
			in:   input(ofVersion("v1.37.2"), configuration(`{"tlsCurvePreferences": ["X25519"]}`)),
			want: []string{"class.spec.kubelet.configuration", "tlsCurvePreferences", "int32"},
		},
		"AFieldOfAnotherType": {
			in:   input(configuration(`{"maxPods": "many"}`)),
			want: []string{"class.spec.kubelet.configuration", "maxPods", "int32"},
		},
		"AConfigurationOfAnotherVersion": {
			in:   input(configuration(`{"apiVersion": "kubelet.config.k8s.io/v2", "kind": "KubeletConfiguration"}`)),
			want: []string{"class.spec.kubelet.configuration.apiVersion", "v2", "kubelet.config.k8s.io/v1beta1 KubeletConfiguration"},
		},
		"AConfigurationWithTheToken": {
			in:   input(configuration(`{"staticPodURLHeader": {"Authorization": ["Bearer \u0024(token)"]}}`)),
			want: []string{"class.spec.kubelet.configuration: Invalid value: must not have $(token), which stands for a value that only Drover fills in"},
		},
		"AClusterDomainWithTheToken": {
			in:   input(func(in *Input) { in.Kubelet.ClusterDomain = "$(token)" }),
			want: []string{"class.spec.kubelet: Invalid value: must not have $(token)"},
		},
		"ADownloadURLWithTheToken": {
			in:   input(func(in *Input) { in.DownloadURL = "https://mirror.example.org/$(token)" }),
			want: []string{"class.spec.operatingSystem.kubeletDownloadURL: Invalid value: must not have $(token)"},
		},
		"ALabelThatWouldStartAnotherFlag": {
			in:   input(func(in *Input) { in.Labels = map[string]string{"a": "b --anonymous-auth=true"} }),
			want: []string{"spec.metadata.labels[a]", "b --anonymous-auth=true"},
		},
		"ALabelWhoseKeyIsNone": {
			in:   input(func(in *Input) { in.Labels = map[string]string{"a b": ""} }),
			want: []string{"spec.metadata.labels", `"a b"`},
		},
		"ALabelThatIsTheIdentityOfAnotherMachine": {
			in:   input(func(in *Input) { in.Labels = map[string]string{clusterv1alpha1.LabelJoinToken: "uid-of-another"} }),
			want: []string{"spec.metadata.labels[" + clusterv1alpha1.LabelJoinToken + "]", "only Drover"},
		},
		"ALabelThatNamesAnotherConfiguration": {
			in:   input(func(in *Input) { in.Labels = map[string]string{clusterv1alpha1.LabelConfig: "uid-of-another"} }),
			want: []string{"spec.metadata.labels[" + clusterv1alpha1.LabelConfig + "]", "only Drover"},
		},
		"ATaintWithAnUnknownEffect": {
			in:   input(func(in *Input) { in.Taints = []machinev1alpha1.Taint{{Key: "a", Effect: "NoNothing"}} }),
			want: []string{"spec.taints[0].effect", "NoNothing", "NoSchedule"},
		},
		"ATaintWhoseValueIsNone": {
			in:   input(func(in *Input) { in.Taints = []machinev1alpha1.Taint{{Key: "a", Value: "b,c", Effect: "NoExecute"}} }),
			want: []string{"spec.taints[0].value", "b,c"},
		},
		"AStartupTaintWithoutAKey": {
			in:   input(func(in *Input) { in.StartupTaints = []machinev1alpha1.Taint{{Effect: "NoExecute"}} }),
			want: []string{"spec.startupTaints[0].key"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := New(tc.in)
			if err == nil {
				t.Fatalf("want an error, got:\n%+v", got)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("want %q in: %v", want, err)
				}
			}
		})
	}
}

// files of a rendered document, by their paths.
func files(t *testing.T, in Input) map[string]string {
	t.Helper()
	d, err := document(t, in).assembled()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range d.Files {
		out[f.Path] = f.Content
	}
	return out
}
