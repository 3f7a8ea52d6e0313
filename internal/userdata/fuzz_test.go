package userdata

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coreos/ignition/v2/config/v3_3"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/clientcmd"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// FuzzDocument renders user data from a Machine and a class that no API server validated. An error names the
// field. A document has exactly the given values, and nothing that was injected.
func FuzzDocument(f *testing.F) {
	f.Add("w-1", "v1.35.4", "https://10.0.0.1:6443", "token", "ca", "pool", "a", "dedicated", "batch", "NoSchedule", `{"maxPods": 20}`)
	f.Add("", "", "", "", "", "", "", "", "", "", "")
	f.Add("w\n#", "v1\nruncmd:", "https://[::1]:6443", "a: b", "-----BEGIN CERTIFICATE-----\n", "k8s.io/x", "a b --v=9", "a=b", "\"", "NoFlight", `{"registerWithTaints": [{"key": "a", "effect": "NoSchedule"}, null]}`)
	f.Add("w", "v1.35.4", "h", "t", "c", "a", "$(reboot)", "t", "v", "NoExecute", `{"authentication": null, "readOnlyPort": 1e99, "x": [[]]}`)
	f.Add("w", "v1.35.4", "h", "t", "c", "a", "'", "t", "v", "NoExecute", `[]`)
	f.Add("w", "v1.35.4", "h", "t", "c", "a", "", "t", "v", "NoExecute", `{"kind": "Secret", "apiVersion": "v1"}`)
	f.Fuzz(func(t *testing.T, hostname, version, server, token, ca, label, value, key, taint, effect, configuration string) {
		for _, s := range []*string{&hostname, &version, &server, &token, &ca, &label, &value, &key, &taint, &effect} {
			*s = strings.ToValidUTF8(*s, "?") // Text that is no UTF-8 does not come from an API server.
		}
		in := Input{
			Hostname: hostname, Version: version, DownloadURL: "https://dl.k8s.io/release",
			Labels: map[string]string{label: value},
			Taints: []machinev1alpha1.Taint{{Key: key, Value: taint, Effect: effect}},
		}
		if json.Valid([]byte(configuration)) && utf8.ValidString(configuration) { // The API server takes no other.
			in.Kubelet.Configuration = &runtime.RawExtension{Raw: []byte(configuration)}
		}
		d, err := New(in)
		if err != nil {
			mustNameFields(t, err)
			return
		}
		// The values of the placeholders are not the user's.
		if u, err := url.Parse(server); err != nil || u.Host == "" || strings.ContainsAny(server, "\"\\ ") {
			server = "https://10.0.0.1:6443"
		}
		if !bootstraputil.IsValidBootstrapToken(token) {
			token = "123456.1234567890123456"
		}
		reported := reported{server: server, token: token, ca: ca}
		for _, format := range []machinev1alpha1.ProvisioningFormat{machinev1alpha1.CloudInit, machinev1alpha1.Ignition} {
			template, err := d.Encode(format)
			if err != nil {
				if strings.ContainsFunc(version, isControl) {
					return
				}
				t.Fatal(err)
			}
			doc, err := Filling{Token: token, Server: server, CA: []byte(ca), UID: "u", ConfigUID: "c"}.Fill(string(template), Form{})
			if err != nil {
				t.Fatal(err)
			}
			checkDocument(t, in, reported, read(t, format, doc))
		}
	})
}

func mustNameFields(t *testing.T, err error) {
	t.Helper()
	var all utilerrors.Aggregate
	if !errors.As(err, &all) {
		t.Fatalf("it does not say by field what is wrong: %v", err)
	}
	for _, e := range all.Errors() {
		var of *field.Error
		if !errors.As(e, &of) || of.Field == "" || of.Type == field.ErrorTypeInternal {
			t.Errorf("it does not name the field: %v", e)
		}
	}
}

// The values of the target cluster.
type reported struct{ server, token, ca string }

// A written document is the state of a VM after it read user data.
type written struct {
	hostname string
	files    map[string]string
	// enabled units.
	enabled []string
}

// read user data as cloud-init and Ignition do.
func read(t *testing.T, format machinev1alpha1.ProvisioningFormat, doc []byte) written {
	t.Helper()
	if format == machinev1alpha1.Ignition {
		return readIgnition(t, doc)
	}
	if !strings.HasPrefix(string(doc), cloudConfigHeader) {
		t.Fatalf("no #cloud-config: %s", doc)
	}
	got := cloudConfig{}
	if err := yaml.UnmarshalStrict(doc, &got); err != nil {
		t.Fatalf("no YAML: %v\n%s", err, doc)
	}
	out := written{hostname: got.Hostname, files: map[string]string{}}
	for _, f := range got.WriteFiles {
		if f.Encoding == "b64" {
			decoded, err := base64.StdEncoding.DecodeString(f.Content)
			if err != nil {
				t.Errorf("%s: %v", f.Path, err)
			}
			f.Content = string(decoded)
		}
		out.files[f.Path] = f.Content
	}
	start := got.RunCmd[len(got.RunCmd)-1]
	if want := []string{"systemctl", "enable", "--now", "--no-block"}; len(start) < len(want) || !slices.Equal(start[:len(want)], want) {
		t.Errorf("no unit is started: %q", start)
	}
	out.enabled = start[4:]
	return out
}

// readIgnition takes the warnings of Ignition's own validator for errors.
func readIgnition(t *testing.T, doc []byte) written {
	t.Helper()
	config, report, err := v3_3.Parse(doc)
	if err != nil || len(report.Entries) > 0 {
		t.Fatalf("Ignition: %v: %s\n%s", err, report, doc)
	}
	out := written{files: map[string]string{}}
	for _, f := range config.Storage.Files {
		u, err := dataurl.DecodeString(*f.Contents.Source)
		if err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		out.files[f.Path] = string(u.Data)
	}
	for _, u := range config.Systemd.Units {
		if u.Contents != nil {
			out.files[path.Join(dirUnits, u.Name)] = *u.Contents
		}
		if u.Enabled != nil && *u.Enabled {
			out.enabled = append(out.enabled, u.Name)
		}
	}
	out.hostname = strings.TrimSuffix(out.files["/etc/hostname"], "\n")
	delete(out.files, "/etc/hostname")
	return out
}

func checkDocument(t *testing.T, in Input, reported reported, got written) {
	t.Helper()
	files := got.files
	if got.hostname != in.Hostname || !slices.Equal(got.enabled, []string{bootstrapUnitName}) {
		t.Errorf("hostname %q, units %q", got.hostname, got.enabled)
	}
	if len(files) != 10 || files[pathCA] != reported.ca {
		t.Errorf("%d files, CA %q", len(files), files[pathCA])
	}
	kc, err := clientcmd.Load([]byte(files[pathBootstrapConfig]))
	if err != nil {
		t.Fatalf("the bootstrap kubeconfig: %v", err)
	}
	if c := kc.Contexts[kc.CurrentContext]; c == nil || kc.AuthInfos[c.AuthInfo].Token != reported.token || kc.Clusters[c.Cluster].Server != reported.server {
		t.Errorf("the bootstrap kubeconfig does not say what it was reported: %+v", kc)
	}
	config := kubeletv1.KubeletConfiguration{}
	if err := yaml.UnmarshalStrict([]byte(files[pathKubeletConfig]), &config); err != nil {
		t.Errorf("a kubelet would not read its configuration: %v\n%s", err, files[pathKubeletConfig])
	}
	for _, want := range []corev1.Taint{{Key: machinev1alpha1.TaintUninitialized, Effect: corev1.TaintEffectNoSchedule}, {Key: in.Taints[0].Key, Effect: corev1.TaintEffect(in.Taints[0].Effect)}} {
		found := 0
		for _, have := range config.RegisterWithTaints {
			if have.MatchTaint(&want) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d taints %s:%s", found, want.Key, want.Effect)
		}
	}
	if flags := files[pathKubeletFlags]; strings.Count(flags, "\n") != 1 || !strings.HasPrefix(flags, "KUBELET_EXTRA_ARGS=") {
		t.Errorf("the flags are more than one line: %q", flags)
	}
}
