package target

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

// joinedWith is the UID of the Machine with whose token the Node of apiServer registered.
const joinedWith = "uid-of-machine"

// theNode identifies the Node of apiServer.
var theNode = NodeIdentity{Token: joinedWith, Name: "n", ProviderID: "local:///a/vm-1"}

// apiServer answers version requests with a status, and lists one Node.
func apiServer(t *testing.T, status int) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// As a real one: the first type that the client accepts.
		accepted, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
		w.Header().Set("Content-Type", accepted)
		if status != http.StatusOK {
			w.WriteHeader(status)
			reason := map[int]metav1.StatusReason{http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusForbidden: metav1.StatusReasonForbidden}[status]
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: reason, Message: "no", Code: int32(status)})
			return
		}
		var answer any = version.Info{GitVersion: "v1.35.4"}
		if r.URL.Path == "/api/v1/nodes" {
			node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-of-node", Labels: map[string]string{v1alpha1.LabelJoinToken: joinedWith}}, Spec: corev1.NodeSpec{ProviderID: "local:///a/vm-1"}}
			answer = corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Node{node}}
		}
		if r.URL.Query().Get("sendInitialEvents") != "" {
			http.Error(w, "not supported", http.StatusUnprocessableEntity)
			return
		}
		if r.URL.Query().Get("watch") != "" {
			w.WriteHeader(http.StatusOK)
			if f, ok := w.(http.Flusher); ok {
				f.Flush()
			}
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func kubeconfigFor(server string) []byte {
	return []byte(strings.Replace(goodKubeconfig, `server: "https://127.0.0.1:1"`, fmt.Sprintf("server: %q, certificate-authority-data: %s", server, base64.StdEncoding.EncodeToString(testCA())), 1))
}

// testCA is the authority of all TLS servers of httptest, as PEM.
var testCA = sync.OnceValue(func() []byte {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
})

func secret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: data}
}

func config(name, secretName string) *v1alpha1.ClusterProviderConfig {
	return &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterProviderConfigSpec{AllowedNamespaces: []v1alpha1.NamespacePattern{"*"}, ProviderConfigSpec: v1alpha1.ProviderConfigSpec{
		Credentials: v1alpha1.Credentials{Source: v1alpha1.CredentialsSecret, SecretRef: &v1alpha1.SecretKeySelector{Namespace: "ns", Name: secretName, Key: "kubeconfig"}},
	}}}
}

func newPool(t *testing.T, self *rest.Config, objs ...client.Object) (*Pool, client.Client) {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).Build()
	return NewPool(Readers{Configs: c, Metadata: c, Live: c, Self: self}), c // ProviderConfigs may not reach loopback.
}

func TestErrorsOfAConfigurationNameWhatIsWrong(t *testing.T) {
	good := func(s *httptest.Server) []client.Object {
		return []client.Object{config("c", "s"), secret("s", map[string][]byte{"kubeconfig": kubeconfigFor(s.URL)})}
	}
	closed := httptest.NewTLSServer(http.NotFoundHandler())
	closed.Close()
	cases := map[string]struct {
		objs   []client.Object
		ref    Ref
		kind   Kind
		reason string
		text   []string
	}{
		"NoConfig": {ref: ClusterRef("c"), kind: ConfigNotFound, reason: "CredentialsMissing", text: []string{"ClusterProviderConfig c"}},
		"NoConfigInTheNamespace": {objs: []client.Object{config("c", "s")}, ref: NamespacedRef("ns", "c"), kind: ConfigNotFound, reason: "CredentialsMissing",
			text: []string{"ProviderConfig ns/c"}},
		"UnknownKindOfConfig": {ref: Ref{Kind: "Other", Name: "c"}, kind: ConfigInvalid, reason: "CredentialsInvalid", text: []string{"providerConfigRef.kind", `"Other"`, "ClusterProviderConfig"}},
		"NoSecret":            {objs: []client.Object{config("c", "s")}, ref: ClusterRef("c"), kind: SecretNotFound, reason: "CredentialsMissing", text: []string{"ClusterProviderConfig c", "Secret ns/s"}},
		"NoKey": {objs: []client.Object{config("c", "s"), secret("s", map[string][]byte{"other": []byte("very-secret")})}, ref: ClusterRef("c"),
			kind: KeyMissing, reason: "CredentialsMissing", text: []string{"ClusterProviderConfig c", "Secret ns/s", `key "kubeconfig"`}},
		"NoKubeconfig": {objs: []client.Object{config("c", "s"), secret("s", map[string][]byte{"kubeconfig": []byte("very-secret")})}, ref: ClusterRef("c"),
			kind: KubeconfigInvalid, reason: "CredentialsInvalid", text: []string{"ClusterProviderConfig c", "Secret ns/s", `key "kubeconfig"`, "not a kubeconfig"}},
		"UnusableCertificate": {objs: []client.Object{config("c", "s"), secret("s", map[string][]byte{"kubeconfig": []byte(strings.Replace(goodKubeconfig, "token: very-secret",
			"client-certificate-data: dmVyeS1zZWNyZXQ=, client-key-data: dmVyeS1zZWNyZXQ=", 1))})}, ref: ClusterRef("c"),
			kind: KubeconfigInvalid, reason: "CredentialsInvalid", text: []string{"Secret ns/s", "not usable"}},
		"Unreachable":         {objs: good(closed), ref: ClusterRef("c"), kind: Unreachable, reason: "Unreachable", text: []string{"ClusterProviderConfig c", closed.URL, "refused"}},
		"CredentialsRefused":  {objs: good(apiServer(t, http.StatusUnauthorized)), ref: ClusterRef("c"), kind: Unauthorized, reason: "Unauthorized", text: []string{"Secret ns/s", `key "kubeconfig"`}},
		"RightsLacking":       {objs: good(apiServer(t, http.StatusForbidden)), ref: ClusterRef("c"), kind: Unauthorized, reason: "Unauthorized", text: []string{"Secret ns/s", "lack a right"}},
		"ServerError":         {objs: good(apiServer(t, http.StatusServiceUnavailable)), ref: ClusterRef("c"), kind: Unreachable, reason: "Unreachable", text: []string{"ClusterProviderConfig c"}},
		"SomethingElseThere":  {objs: good(apiServer(t, http.StatusNotFound)), ref: ClusterRef("c"), kind: Unreachable, reason: "Unreachable", text: []string{"does not answer as an API server"}},
		"SourceWithoutSecret": {objs: []client.Object{&v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: v1alpha1.ClusterProviderConfigSpec{ProviderConfigSpec: v1alpha1.ProviderConfigSpec{Credentials: v1alpha1.Credentials{Source: "Secret"}}}}}, ref: ClusterRef("c"), kind: ConfigInvalid, reason: "CredentialsInvalid", text: []string{"spec.credentials.secretRef"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, _ := newPool(t, nil, tc.objs...)
			conn, err := p.Get(t.Context(), tc.ref)
			if err == nil {
				_, err = conn.Probe(t.Context())
			}
			var terr *Error
			if !errors.As(err, &terr) {
				t.Fatalf("error %v is not typed", err)
			}
			if terr.Kind != tc.kind || terr.Reason() != tc.reason {
				t.Errorf("kind %s, reason %s, want %s, %s: %v", terr.Kind, terr.Reason(), tc.kind, tc.reason, err)
			}
			for _, want := range append(tc.text, tc.ref.Name) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "very-secret") || strings.Contains(err.Error(), "dmVyeS1zZWNyZXQ") {
				t.Errorf("%q quotes the Secret", err)
			}
		})
	}
}

func TestAProviderConfigReadsItsOwnNamespaceOnly(t *testing.T) {
	pc := &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "mine", Name: "c"}, Spec: config("c", "s").Spec.ProviderConfigSpec}
	p, _ := newPool(t, nil, pc, secret("s", map[string][]byte{"kubeconfig": kubeconfigFor("https://127.0.0.1:1")}))
	_, err := p.Get(t.Context(), NamespacedRef("mine", "c"))
	if !Is(err, SecretNotFound) || !strings.Contains(err.Error(), "mine/s") {
		t.Fatalf("error %v, want one that Secret mine/s is not there", err)
	}
}

func TestAConnectionIsSharedUntilItsSecretChanges(t *testing.T) {
	s := secret("s", map[string][]byte{"kubeconfig": kubeconfigFor("https://127.0.0.1:1")})
	p, c := newPool(t, nil, config("c", "s"), s)
	get := func() *Conn {
		t.Helper()
		conn, err := p.Get(t.Context(), ClusterRef("c"))
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	update := func(change func()) {
		t.Helper()
		change()
		if err := c.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	first := get()
	if get() != first {
		t.Fatal("the second user got a connection of its own")
	}
	update(func() { s.Labels = map[string]string{"a": "b"} })
	if get() != first {
		t.Fatal("a label of the Secret made a new connection")
	}
	update(func() { s.Data["kubeconfig"] = kubeconfigFor("https://127.0.0.1:2") })
	second := get()
	if second == first || second.Host != "https://127.0.0.1:2" {
		t.Fatalf("the connection still goes to %s", second.Host)
	}
	p.Forget(ClusterRef("c"))
	if get() == second {
		t.Fatal("a forgotten connection came back")
	}
}

func TestConfigurationsWithTheSameCredentialsShareAConnection(t *testing.T) {
	server := apiServer(t, http.StatusOK)
	kubeconfig := map[string][]byte{"kubeconfig": kubeconfigFor(server.URL)}
	b := config("b", "s2")
	b.Spec.APIServer = &v1alpha1.APIServer{Endpoint: "https://for-machines"}
	p, _ := newPool(t, nil, config("a", "s1"), b, secret("s1", kubeconfig), secret("s2", kubeconfig))
	woken := make(chan Ref, 10)
	p.Subscribe(func(ref Ref, _ NodeIdentity) { woken <- ref })
	conns := map[string]*Conn{}
	for _, name := range []string{"a", "b"} {
		conn, err := p.Get(t.Context(), ClusterRef(name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Nodes(t.Context(), "x", "x", "x"); err != nil {
			t.Fatal(err)
		}
		conns[name] = conn
	}
	l := conns["a"].link
	if conns["b"].link != l || len(p.links) != 1 || p.shared.connected.Load() != 1 {
		t.Fatal("the same credentials make two connections")
	}
	if conns["b"].Spec.APIServer == nil || conns["a"].Spec.APIServer != nil {
		t.Error("the configurations share what is their own")
	}
	p.StopIdle(ClusterRef("a"), time.Now())
	if l.nodes == nil {
		t.Fatal("the watch was stopped under the other configuration")
	}
	publish(l, l.node, theNode)
	for ref := <-woken; ; ref = <-woken {
		if ref == ClusterRef("b") {
			break
		}
	}
	p.Forget(ClusterRef("b"))
	if l.nodes != nil {
		t.Error("the watch goes on without a user")
	}
	if len(p.links) != 1 {
		t.Error("the connection was closed under the other configuration")
	}
	p.Forget(ClusterRef("a"))
	if len(p.links) != 0 || p.shared.connected.Load() != 0 {
		t.Error("the connection is open without a user")
	}
}

func TestAWatchOutlivesTheRotationOfItsCredentials(t *testing.T) {
	old, next := apiServer(t, http.StatusOK), apiServer(t, http.StatusOK)
	s := secret("s", map[string][]byte{"kubeconfig": kubeconfigFor(old.URL)})
	p, c := newPool(t, nil, config("c", "s"), s)
	woken := make(chan NodeIdentity, 10)
	conn, err := p.Get(t.Context(), ClusterRef("c"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Nodes(t.Context(), joinedWith, "", ""); err != nil {
		t.Fatal(err)
	}
	p.Subscribe(func(_ Ref, n NodeIdentity) { woken <- n })
	s.Data["kubeconfig"] = kubeconfigFor(next.URL)
	if err := c.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	after, err := p.Get(t.Context(), ClusterRef("c"))
	if err != nil {
		t.Fatal(err)
	}
	if after.Host != next.URL || conn.link.nodes != nil || len(p.links) != 1 {
		t.Errorf("host %s, %d connections", after.Host, len(p.links))
	}
	select {
	case n := <-woken: // by the new watch, which no caller requested.
		if n != theNode {
			t.Errorf("woken for %+v", n)
		}
	case <-patience.Over():
		t.Error("nothing watches Nodes until somebody asks")
	}
	p.Forget(ClusterRef("c"))
}

func TestManyWhoAskAreOneProbe(t *testing.T) {
	server := apiServer(t, http.StatusOK)
	p, _ := newPool(t, nil, config("c", "s"), secret("s", map[string][]byte{"kubeconfig": kubeconfigFor(server.URL)}))
	now := time.Now()
	p.now = func() time.Time { return now }
	conn, err := p.Get(t.Context(), ClusterRef("c"))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := conn.Probe(t.Context()); err != nil || v != "v1.35.4" {
		t.Fatalf("version %q, error %v", v, err)
	}
	server.Close()
	if _, err := conn.Probe(t.Context()); err != nil {
		t.Errorf("a moment later it asks again: %v", err)
	}
	now = now.Add(probeAgain)
	if _, err := conn.Probe(t.Context()); !Is(err, Unreachable) {
		t.Errorf("error %v, want Unreachable", err)
	}
}

func TestNodesAreFoundByTheirIdentityAndTheirUsersWoken(t *testing.T) {
	server := apiServer(t, http.StatusOK)
	p, _ := newPool(t, nil, config("c", "s"), secret("s", map[string][]byte{"kubeconfig": kubeconfigFor(server.URL)}))
	var mu sync.Mutex
	woken := map[NodeIdentity]int{}
	p.Subscribe(func(ref Ref, n NodeIdentity) {
		mu.Lock()
		defer mu.Unlock()
		if ref == ClusterRef("c") {
			woken[n]++
		}
	})

	conn, err := p.Get(t.Context(), ClusterRef("c"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		token, name, uid string
		found            int
	}{
		"ByItsToken":           {token: joinedWith, found: 1},
		"ByItsName":            {name: "n", found: 1},
		"ByItsUID":             {uid: "uid-of-node", found: 1},
		"OnceByAllOfThem":      {token: joinedWith, name: "n", uid: "uid-of-node", found: 1},
		"NotThatOfAnother":     {token: "uid-of-another", name: "m", uid: "uid-of-m"},
		"NotByItsProviderID":   {token: "local:///a/vm-1", name: "local:///a/vm-1", uid: "local:///a/vm-1"},
		"NotIfNothingIsAsked":  {},
		"ByOneThatIsEnough":    {token: joinedWith, name: "m", uid: "uid-of-m", found: 1},
		"NotByTheTokenAsAName": {name: joinedWith, uid: joinedWith},
	} {
		nodes, err := conn.Nodes(t.Context(), tc.token, tc.name, tc.uid)
		if err != nil || len(nodes) != tc.found || tc.found == 1 && nodes[0].GetName() != "n" {
			t.Fatalf("%s: nodes %v, error %v", name, nodes, err)
		}
	}
	for providerID, want := range map[string]int{"local:///a/vm-1": 1, "local:///a/vm-2": 0, "": 0} {
		if nodes, err := conn.NodesOfVM(t.Context(), providerID); err != nil || len(nodes) != want {
			t.Errorf("of the VM %q: nodes %v, error %v", providerID, nodes, err)
		}
	}
	patience.Eventually(t, func(context.Context) string {
		mu.Lock()
		defer mu.Unlock()
		if woken[theNode] != 1 {
			return fmt.Sprintf("woken: %v", woken)
		}
		return ""
	})
	p.StopIdle(ClusterRef("c"), time.Now().Add(-time.Hour))
	if conn.link.nodes == nil {
		t.Fatal("a watch in use was stopped")
	}
	p.StopIdle(ClusterRef("c"), time.Now())
	if conn.link.nodes != nil {
		t.Fatal("an idle watch goes on")
	}
	if nodes, err := conn.Nodes(t.Context(), joinedWith, "", ""); err != nil || len(nodes) != 1 {
		t.Fatalf("after a pause: nodes %v, error %v", nodes, err)
	}
	p.Forget(ClusterRef("c"))
}

// TestAnInterruptionIsReportedToAllItsUsers has two configurations with the same credentials, and another one.
func TestAnInterruptionIsReportedToAllItsUsers(t *testing.T) {
	s := apiServer(t, http.StatusOK)
	good := map[string][]byte{"kubeconfig": kubeconfigFor(s.URL)}
	p, _ := newPool(t, nil, config("a", "s"), config("b", "s"), config("c", "other"), secret("s", good), secret("other", map[string][]byte{"kubeconfig": kubeconfigFor("https://127.0.0.1:1")}))
	var woken []string
	p.SubscribeInterruptions(func(ref Ref, _ error) { woken = append(woken, ref.Name) })
	get := func(name string) *Conn {
		t.Helper()
		conn, err := p.Get(t.Context(), ClusterRef(name))
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	a := get("a")
	get("b")
	get("c")
	if _, err := a.Probe(t.Context()); err != nil || len(woken) > 0 {
		t.Fatalf("%q were woken by a probe that succeeded, error %v", woken, err)
	}
	s.CloseClientConnections()
	s.Close()
	for range 2 {
		if _, err := a.Kube.CoreV1().Namespaces().Get(t.Context(), "ns", metav1.GetOptions{}); err == nil {
			t.Fatal("a cluster that is gone answers")
		}
	}
	slices.Sort(woken)
	if !slices.Equal(woken, []string{"a", "b"}) {
		t.Errorf("%q were woken, want both users once", woken)
	}
}

func TestADeadClusterBlocksNoWorker(t *testing.T) {
	closed := httptest.NewTLSServer(http.NotFoundHandler())
	closed.Close()
	p, _ := newPool(t, nil, config("c", "s"), secret("s", map[string][]byte{"kubeconfig": kubeconfigFor(closed.URL)}))
	conn, err := p.Get(t.Context(), ClusterRef("c"))
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	for range 100 {
		if _, err := conn.Nodes(t.Context(), "x", "x", "x"); !Is(err, Unreachable) {
			t.Fatalf("error %v, want Unreachable", err)
		}
	}
	// One wait at most, and then none.
	if took := time.Since(started); took > patience.Scale(2*syncWait) {
		t.Errorf("100 callers waited %s", took)
	}
	p.Forget(ClusterRef("c"))
}

func TestInjectedIdentityIsOurOwn(t *testing.T) {
	server := apiServer(t, http.StatusOK)
	cfg := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: v1alpha1.ClusterProviderConfigSpec{ProviderConfigSpec: v1alpha1.ProviderConfigSpec{Credentials: v1alpha1.Credentials{Source: v1alpha1.CredentialsInjectedIdentity}}}}
	self := &rest.Config{Host: server.URL, QPS: 1, TLSClientConfig: rest.TLSClientConfig{CAData: testCA()}}
	p, _ := newPool(t, self, cfg)
	p.readers.InjectedIdentityFor = []string{"c"}
	conn, err := p.Get(context.Background(), ClusterRef("c"))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := conn.Probe(t.Context()); err != nil || v != "v1.35.4" {
		t.Fatalf("version %q, error %v", v, err)
	}
	if self.QPS != 1 || self.WrapTransport != nil {
		t.Error("our own configuration was changed")
	}
}

// TestOurOwnIdentityIsForNamedConfigurationsAlone has Machines that would become Nodes of the control cluster.
func TestOurOwnIdentityIsForNamedConfigurationsAlone(t *testing.T) {
	spec := v1alpha1.ProviderConfigSpec{Credentials: v1alpha1.Credentials{Source: v1alpha1.CredentialsInjectedIdentity}}
	const field = `spec.credentials.source: invalid value "InjectedIdentity": `
	for name, tc := range map[string]struct {
		named []string
		obj   client.Object
		ref   Ref
		err   string
		kind  Kind
	}{
		"ANamedOne": {named: []string{"a", "c"}, obj: &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: v1alpha1.ClusterProviderConfigSpec{ProviderConfigSpec: spec}}, ref: ClusterRef("c")},
		"OneThatIsNotNamed": {named: []string{"a", "b"}, obj: &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: v1alpha1.ClusterProviderConfigSpec{ProviderConfigSpec: spec}}, ref: ClusterRef("c"),
			err: field + "it is allowed for the ClusterProviderConfigs that the flag --injected-identity-for of provider-drover names: a, b", kind: IdentityNotAllowed},
		"ByDefaultNone": {obj: &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: v1alpha1.ClusterProviderConfigSpec{ProviderConfigSpec: spec}}, ref: ClusterRef("c"),
			err: field + "it is allowed for the ClusterProviderConfigs that the flag --injected-identity-for of provider-drover names: none", kind: IdentityNotAllowed},
		"NeverThatOfANamespace": {named: []string{"c"}, obj: &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: spec}, ref: NamespacedRef("ns", "c"),
			err: field + `a ProviderConfig must have "Secret"`, kind: ConfigInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newPool(t, &rest.Config{Host: "https://127.0.0.1:1"}, tc.obj)
			p.readers.InjectedIdentityFor = tc.named
			_, err := p.Get(t.Context(), tc.ref)
			switch {
			case tc.err == "" && err != nil:
				t.Error(err)
			case tc.err != "" && (!Is(err, tc.kind) || !strings.HasSuffix(err.Error(), tc.err)):
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestHeartbeatsWakeNobody(t *testing.T) {
	at := func(ready corev1.ConditionStatus, beat int64) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: time.Unix(beat, 0).String()}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.Unix(beat, 0)}},
		}}
	}
	if !sameFacts(at(corev1.ConditionTrue, 1), at(corev1.ConditionTrue, 2)) {
		t.Error("a heartbeat is a fact")
	}
	if sameFacts(at(corev1.ConditionTrue, 1), at(corev1.ConditionUnknown, 2)) {
		t.Error("a lost Node is none")
	}
}

// TestAChangedIdentityWakesBoth has a Node whose token's label is removed, or restored: the Machine that it
// belonged to must be enqueued.
func TestAChangedIdentityWakesBoth(t *testing.T) {
	with := func(token string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{v1alpha1.LabelJoinToken: token}}}
	}
	bare := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for name, tc := range map[string]struct {
		old, new *corev1.Node
		want     []NodeIdentity
	}{
		"RemovedByTheNode":     {with("a"), bare, []NodeIdentity{{Token: "a", Name: "n"}, {Name: "n"}}},
		"PutBack":              {bare, with("a"), []NodeIdentity{{Name: "n"}, {Token: "a", Name: "n"}}},
		"ReplacedByAnotherOne": {with("a"), with("b"), []NodeIdentity{{Token: "a", Name: "n"}, {Token: "b", Name: "n"}}},
		"Unchanged":            {with("a"), with("a"), nil},
	} {
		var got []NodeIdentity
		handler(func(n NodeIdentity) { got = append(got, n) }).OnUpdate(tc.old, tc.new)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: notified of %+v, want %+v", name, got, tc.want)
		}
	}
	var got []NodeIdentity
	h := handler(func(n NodeIdentity) { got = append(got, n) })
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "n", Obj: with("a")})
	if want := []NodeIdentity{{Token: "a", Name: "n"}}; !slices.Equal(got, want) {
		t.Errorf("deletion that the watch missed: notified of %+v, want %+v", got, want)
	}
}

func TestTheConfigurationOfAMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		ref  machinev1alpha1.ClusterReference
		want Ref
	}{
		"TheDefault":       {want: ClusterRef("default")},
		"OfAllNamespaces":  {machinev1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: "c"}, ClusterRef("c")},
		"OfItsNamespace":   {machinev1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "c"}, NamespacedRef("ns", "c")},
		"WithoutKindOfAll": {machinev1alpha1.ClusterReference{Name: "c"}, ClusterRef("c")},
	} {
		m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
		m.Spec.ClusterRef = tc.ref
		if got := RefOf(m); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
