package kit

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/test/patience"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	token     = "abcdef.0123456789abcdef"
	signature = "c2lnbmF0dXJlLW9mLWEtand0"
	key       = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY/PuoAoGCCqGSM49\nAwEHoUQDQgAEPR3tU2Fta9ktY+6P9G0cWO+0kETA6SFs38GecTyudlHz6xvCdz8q\nEKTcWGekdmdDPsHloRNtsiCa697B2O9IFA==\n-----END EC PRIVATE KEY-----\n"
)

func newTestWitness(dir string) *Witness {
	return &Witness{
		dir: dir, stop: func() {}, secrets: map[string]string{}, tokens: map[string]map[string]bool{},
		objects: map[string]int{}, watched: map[string]bool{},
	}
}

func TestALeakIsFound(t *testing.T) {
	w := newTestWitness("")
	for name, s := range map[string]corev1.Secret{
		"user-data":  {Type: "connection.crossplane.io/v1alpha1", Data: map[string][]byte{"token": []byte(token), "server": []byte("https://10.0.0.1:6443")}},
		"tls":        {Data: map[string][]byte{"tls.key": []byte(key), "ca.crt": []byte("-----BEGIN CERTIFICATE-----\n")}},
		"kubeconfig": {Data: map[string][]byte{"kubeconfig": []byte("apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: header.claims." + signature + "}}]\n")}},
		"local":      {Data: map[string][]byte{"credentials": []byte(`{"endpoint": "http://127.0.0.1:8088", "token": "of-the-local-cloud"}`)}},
		"vsphere":    {Data: map[string][]byte{"credentials": []byte(`{"username": "administrator@vsphere.local", "password": "of-the-administrator"}`)}},
		"openstack":  {Data: map[string][]byte{"credentials": []byte(`{"applicationCredentialID": "project-7f3a0c1e", "applicationCredentialSecret": "of-the-openstack"}`)}},
		"alibaba":    {Data: map[string][]byte{"credentials": []byte(`{"accessKeyID": "LTAI5tDroverExample0001", "accessKeySecret": "of-the-access-key"}`)}},
		"proxmox":    {Data: map[string][]byte{"credentials": []byte(`{"tokenID": "workers@pve!drover", "secret": "of-the-proxmox-token"}`)}},
		"nutanix":    {Data: map[string][]byte{"credentials": []byte(`{"username": "drover-workers", "password": "of-the-prism-central"}`)}},
		"one-word":   {Data: map[string][]byte{"anything": []byte("of-another-cloud")}},
		"bootstrap":  {Data: map[string][]byte{"token-id": []byte("abcdef"), "description": []byte("machine_default/workers-0"), "expiration": []byte("2026-01-01T00:00:00Z")}},
	} {
		s.Name = name
		w.keepSecret(&s)
	}
	s := newSearch(w.secrets)
	encoded := base64.StdEncoding.EncodeToString
	for name, text := range map[string]string{
		"AsItIs":                     "joined with " + token,
		"TheSecretHalf":              `{"message": "0123456789abcdef"}`,
		"InBase64":                   encoded([]byte("token: " + token + "\n")),
		"InBase64OneLater":           encoded([]byte(" token: " + token + "\n")),
		"InBase64TwoLater":           encoded([]byte("  token: " + token + "\n")),
		"InGzip":                     `"userData": "` + encoded(zip("token: "+token)) + `"`,
		"APrivateKey":                key,
		"APrivateKeyInAKubeconfig":   "client-key-data: " + encoded([]byte(key)),
		"ATokenOfAKubeconfig":        "Bearer header.claims." + signature,
		"ATokenOfACloud":             "of-the-local-cloud",
		"APasswordOfACloud":          "of-the-administrator",
		"AnApplicationCredential":    "of-the-openstack",
		"ASecretOfAnAccessKey":       "of-the-access-key",
		"ASecretOfAToken":            "of-the-proxmox-token",
		"APasswordOfPrismCentral":    "of-the-prism-central",
		"AWordOfACloud":              "of-another-cloud",
		"ATokenAtTheVeryEnd":         "0123456789abcdef",
		"ATokenInTheMiddleOfABigLog": string(make([]byte, 1<<16)) + token + string(make([]byte, 1<<16)),
	} {
		t.Run(name, func(t *testing.T) {
			if len(s.find([]byte(text))) == 0 {
				t.Error("not found")
			}
		})
	}
	for _, text := range []string{
		"token abcdef of https://10.0.0.1:6443 http://127.0.0.1:8088 -----BEGIN CERTIFICATE-----",
		"administrator@vsphere.local project-7f3a0c1e workers@pve!drover machine_default/workers-0 2026-01-01T00:00:00Z", "0123456789abcde", "",
	} {
		if leaks := s.find([]byte(text)); len(leaks) > 0 {
			t.Errorf("public, and taken for a secret: %v", leaks)
		}
	}
	if got := w.Tokens(""); len(got) != 1 || got[0] != token {
		t.Errorf("tokens %v", got)
	}
}

func zip(text string) []byte {
	b := &bytes.Buffer{}
	z := gzip.NewWriter(b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.Bytes()
}

// TestOnlyTheFieldThatIsDocumentedMayHaveUserData has a VM of a cloud whose kind has no reference
// to a Secret, in a watch and in an audit log.
func TestOnlyTheFieldThatIsDocumentedMayHaveUserData(t *testing.T) {
	instances := schema.GroupResource{Group: "ec2.aws.m.upbound.io", Resource: "instances"}
	userData := base64.StdEncoding.EncodeToString([]byte("#cloud-config\n" + token))
	vm := func(spec, status string) string {
		return fmt.Sprintf(`{"spec":{"forProvider":{%s}},"status":{%s}}`, spec, status)
	}
	watched := func(r schema.GroupResource) func(map[string]any) (schema.GroupResource, []map[string]any) {
		return func(line map[string]any) (schema.GroupResource, []map[string]any) {
			return r, []map[string]any{line["object"].(map[string]any)}
		}
	}
	entry := func(group, resource, body string) string {
		return fmt.Sprintf(`{"objectRef":{"apiGroup":%q,"resource":%q},"requestObject":%s}`, group, resource, body)
	}
	cases := map[string]struct {
		objects func(map[string]any) (schema.GroupResource, []map[string]any)
		line    string
		leaks   int
	}{
		"TheField":                  {watched(instances), `{"object":` + vm(`"userDataBase64":"`+userData+`"`, "") + `}`, 0},
		"AnotherField":              {watched(instances), `{"object":` + vm(`"userData":"`+token+`"`, "") + `}`, 1},
		"BesideTheField":            {watched(instances), `{"object":` + vm(`"userDataBase64":"`+userData+`","tags":{"a":"`+token+`"}`, "") + `}`, 1},
		"TheStatus":                 {watched(instances), `{"object":` + vm("", `"atProvider":{"userDataBase64":"`+userData+`"}`) + `}`, 1},
		"TheFieldOfAnotherKind":     {watched(schema.GroupResource{Group: "hcloud.drover.dev", Resource: "virtualmachines"}), `{"object":` + vm(`"userDataBase64":"`+userData+`"`, "") + `}`, 1},
		"TheFieldInTheAuditLog":     {audited, entry("ec2.aws.m.upbound.io", "instances", vm(`"userDataBase64":"`+userData+`"`, "")), 0},
		"AnotherFieldInTheAuditLog": {audited, entry("ec2.aws.m.upbound.io", "instances", vm("", `"message":"`+token+`"`)), 1},
		"ASecretInTheAuditLog":      {audited, entry("", "secrets", `{"data":{"token":"`+token+`"}}`), 0},
		"ASecretsNameInTheAuditLog": {audited, `{"requestURI":"/api/v1/secrets?a=` + token + `","objectRef":{"resource":"secrets"}}`, 1},
		"AnEventInTheAuditLog":      {audited, entry("", "events", `{"message":"`+token+`"}`), 1},
		"ALineOfALog":               {nil, `{"object":` + vm(`"userDataBase64":"`+userData+`"`, "") + `}`, 1},
		"ALineThatIsNoJSON":         {audited, `{"object": ` + token, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newTestWitness("")
			w.keepSecret(&corev1.Secret{Data: map[string][]byte{"token": []byte(token)}})
			file := filepath.Join(t.TempDir(), "record")
			if err := os.WriteFile(file, []byte("\n"+tc.line), 0o600); err != nil {
				t.Fatal(err)
			}
			leaks, err := leaksIn(record{file, tc.objects}, newSearch(w.secrets))
			if err != nil || len(leaks) != tc.leaks {
				t.Errorf("leaks %v, want %d; %v", leaks, tc.leaks, err)
			}
		})
	}
}

// TestKindsThatAreServedLaterAreRecordedToo has an API server that serves its second kind only
// after the first discovery.
func TestKindsThatAreServedLaterAreRecordedToo(t *testing.T) {
	looks := 0
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		verbs := metav1.Verbs{"list", "watch"}
		answer := func(v any) { _ = json.NewEncoder(rw).Encode(v) }
		switch r.URL.Path {
		case "/api":
			answer(metav1.APIVersions{Versions: []string{"v1"}})
		case "/api/v1":
			answer(metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "secrets", Kind: "Secret", Verbs: verbs}, {Name: "bindings", Verbs: metav1.Verbs{"create"}}}})
		case "/apis":
			looks++
			groups := metav1.APIGroupList{}
			if looks > 1 {
				v := metav1.GroupVersionForDiscovery{GroupVersion: "acme.example/v1", Version: "v1"}
				groups.Groups = []metav1.APIGroup{{Name: "acme.example", Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}}
			}
			answer(groups)
		case "/apis/acme.example/v1":
			answer(metav1.APIResourceList{GroupVersion: "acme.example/v1", APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget", Verbs: verbs}, {Name: "widgets/status", Kind: "Widget", Verbs: verbs}}})
		case "/api/v1/secrets":
			answer(map[string]any{"type": "ADDED", "object": corev1.Secret{Data: map[string][]byte{"token": []byte(token)}}})
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/apis/acme.example/v1/widgets":
			answer(map[string]any{"type": "DELETED", "object": map[string]any{"status": token}})
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			http.NotFound(rw, r)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server.URL}}, Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c"}}, CurrentContext: "x",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	w := newTestWitness(t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	if err := w.record(ctx, "control", &Cluster{Kubeconfig: kubeconfig}, "audit.log"); err != nil {
		t.Fatal(err)
	}
	widgets := schema.GroupResource{Group: "acme.example", Resource: "widgets"}
	patience.Eventually(t, func(context.Context) string {
		if w.Versions(widgets) == 0 {
			return "no widget is recorded"
		}
		return ""
	})
	stop()
	w.all.Wait()
	if got := w.clusters[0].watching; len(got) != 2 || len(w.watched) != 2 || len(w.faults) > 0 {
		t.Errorf("watched %v of %v, want secrets and widgets; %v", w.watched, got, w.faults)
	}
	b, err := os.ReadFile(w.fileOf(w.clusters[0], widgets))
	if err != nil || !strings.Contains(string(b), token) {
		t.Errorf("record %s, %v", b, err)
	}
}
