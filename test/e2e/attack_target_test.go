package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

const (
	// maxMemory is the memory that provider-drover may use, whatever a target cluster does: half
	// of the limit in package/provider-drover/runtime.yaml. In bytes.
	maxMemory = 512 << 20
	// hugeAnnotation is the length of an annotation of a hostile Node, in bytes.
	hugeAnnotation = 400 << 20
)

// TestATargetClusterCannot checks that a hostile target cluster harms neither the Machines of
// other clusters nor provider-drover: it sends hostile answers while Machines of two other
// clusters join as fast as usual.
func TestATargetClusterCannot(t *testing.T) {
	leaveNothing(t)
	lie := func(nodes http.HandlerFunc) http.HandlerFunc { return apiServer(nodes, nil) }
	s := newStage(t)
	heavy := []hostile{
		{name: "SendAHugeNodeInGzip", answer: lie(hugeNode(t))},
		{name: "SendAHugeNode", answer: lie(hugePlainNode)},
		{name: "SendAHugeError", answer: hugeError},
		{name: "SendNodesWithoutEnd", answer: apiServer(emptyList, endlessWatch), long: 6 * time.Second},
		{name: "SendTooManyNodes", answer: lie(manyNodes)},
	}
	light := []hostile{
		{name: "AnswerSlowly", answer: lie(drip)},
		{name: "AnswerEverythingSlowly", answer: drip},
		{name: "Redirect", answer: redirecting(t)},
		{name: "SendOtherKinds", answer: lie(otherKind)},
		{name: "SendInvalidJSON", answer: lie(invalidJSON)},
		{name: "SendErrorsWithBodies", answer: secretive},
		{name: "SendStatusesWithBodies", answer: lie(statusWithBody)},
		{name: "SendNodesOfOthers", answer: lie(nodesOfOthers(t, s))},
	}
	g := &siege{stage: s, elsewhere: []kit.Fleet{plane.NewTargetFleet(t), plane.NewFleet(t)}}
	for i := range 2 {
		g.usual = max(g.usual, joinAll(t, g.elsewhere, fmt.Sprintf("calm-%d", i)))
	}
	s.all = snapshot(t, g.elsewhere[0].Namespace, g.elsewhere[1].Namespace)
	for _, h := range heavy {
		t.Run(h.name, func(t *testing.T) { g.endure(t, h) })
	}
	t.Run("AllAtOnce", func(t *testing.T) { g.endure(t, light...) })
	for _, f := range g.elsewhere {
		must(t, f.Client.DeleteAllOf(t.Context(), &machinev1alpha1.Machine{}, client.InNamespace(f.Namespace)))
	}
	for _, f := range g.elsewhere {
		f.AwaitNothing(t)
	}
	joined := g.elsewhere[0]
	must(t, joined.Client.DeleteAllOf(t.Context(), &clusterv1alpha1.ProviderConfig{}, client.InNamespace(joined.Namespace)))
}

// A hostile target cluster.
type hostile struct {
	name   string
	answer http.HandlerFunc
	// long is the time for which the cluster is watched after the joins.
	long time.Duration
}

// A siege has other clusters, whose joins must not slow down.
type siege struct {
	*stage
	elsewhere []kit.Fleet
	// usual time of a join.
	usual time.Duration
}

// endure several hostile clusters at the same time.
func (g *siege) endure(t *testing.T, clusters ...hostile) {
	calm(t)
	memory := plane.WatchMemory(t, "provider-drover")
	members := map[string]*attacker{}
	listeners := map[string]*kit.Listener{}
	for _, h := range clusters {
		l := kit.Listen(t, "127.0.0.1", true, h.answer)
		a := g.attacker(t, h.name)
		a.f.SetKubeconfig(t, kit.KubeconfigOf(t, clientcmdapi.Cluster{Server: l.URL, CertificateAuthorityData: l.CA}))
		must(t, a.f.Client.Create(t.Context(), a.config("target", nil)))
		for i := range 3 {
			must(t, a.f.Client.Create(t.Context(), a.machine(fmt.Sprintf("hostage-%d", i), machinev1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "target"})))
		}
		members[h.name], listeners[h.name] = a, l
	}
	for _, h := range clusters {
		patience.Eventually(t, func(context.Context) string {
			if n := listeners[h.name].Requests(); n < 2 {
				return fmt.Sprintf("%s: the cluster was asked %d times", h.name, n)
			}
			return ""
		}, members[h.name].f.Describe)
	}
	// The hostile clusters stay: what waits for them is slow each time, and a computer that was busy for a while is not.
	const attempts = 4
	for i := range attempts {
		limit := patience.Scale(2*g.usual + 2*time.Second)
		took := joinAll(t, g.elsewhere, fmt.Sprintf("%s-%d", strings.ToLower(clusters[0].name), i))
		t.Logf("joins of other clusters took %s, usually %s", took, g.usual)
		if took <= limit {
			break
		}
		if i == attempts-1 {
			t.Errorf("joins of other clusters took %s, usually %s, may take %s", took, g.usual, limit)
		}
	}
	for _, h := range clusters {
		if h.long > 0 {
			patience.Throughout(t, patience.After(h.long), func(context.Context) string { return "" })
		}
	}
	t.Run("Quotes", func(t *testing.T) {
		for _, h := range clusters {
			t.Run(h.name, func(t *testing.T) {
				t.Parallel()
				members[h.name].nothing(t, members[h.name].nothingOfABody)
			})
		}
	})
	most, restarts := memory.Done()
	t.Logf("provider-drover had %d MB at most", most>>20)
	if most > maxMemory {
		t.Errorf("provider-drover had %d MB, want %d MB at most", most>>20, maxMemory>>20)
	}
	if restarts > 0 {
		t.Errorf("provider-drover restarted %d times", restarts)
	}
	for _, h := range clusters {
		members[h.name].forget(t)
	}
}

// calm restarts provider-drover if a previous attack left it with a high memory usage.
func calm(t *testing.T) {
	t.Helper()
	w := plane.WatchMemory(t, "provider-drover")
	most, _ := w.Done()
	if most > maxMemory/2 {
		t.Logf("provider-drover has %d MB before the attack: it is restarted", most>>20)
		must(t, plane.Launcher(t.Context(), "restart", "provider-drover"))
	}
}

// forget the hostile cluster: no object uses it any more.
func (a *attacker) forget(t *testing.T) {
	t.Helper()
	a.clean(t)
	must(t, a.f.Client.DeleteAllOf(t.Context(), &clusterv1alpha1.ProviderConfig{}, client.InNamespace(a.f.Namespace)))
}

// joinAll creates a Machine in each fleet at the same time, and returns the time until the last
// one runs.
func joinAll(t *testing.T, fleets []kit.Fleet, name string) time.Duration {
	t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	var longest atomic.Int64
	for _, f := range fleets {
		m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}, Spec: f.MachineSpec(kit.NewVersion)}
		f.Create(t, m)
		o := &member{f: f, name: name}
		all.Go(func() {
			if s := patience.Await(t.Context(), func(ctx context.Context) string { return o.is(ctx, machinev1alpha1.MachineRunning) }); s != "" {
				t.Error(s)
			}
			for took := int64(time.Since(began)); ; {
				was := longest.Load()
				if was >= took || longest.CompareAndSwap(was, took) {
					return
				}
			}
		})
	}
	all.Wait()
	return time.Duration(longest.Load())
}

// apiServer answers like an API server, except for Nodes and for watches.
func apiServer(nodes, watch http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/version":
			answer(w, version.Info{Major: "1", Minor: "35", GitVersion: "v1.35.4"})
		case r.URL.Path == "/api/v1/nodes" && r.URL.Query().Get("watch") != "" && watch != nil:
			watch(w, r)
		case r.URL.Path == "/api/v1/nodes":
			nodes(w, r)
		case strings.HasSuffix(r.URL.Path, "selfsubjectaccessreviews"):
			answer(w, map[string]any{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": map[string]any{"allowed": true}})
		case r.Method == http.MethodPost:
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(body)
		case r.URL.Query().Get("watch") != "":
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/secrets"):
			answer(w, map[string]any{"kind": "SecretList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}})
		case strings.HasSuffix(r.URL.Path, "/certificatesigningrequests"):
			answer(w, map[string]any{"kind": "CertificateSigningRequestList", "apiVersion": "certificates.k8s.io/v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}})
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":%q}`, bodyMark)
		}
	}
}

func answer(w http.ResponseWriter, o any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o)
}

const (
	listHead = `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`
	nodeHead = `{"metadata":{"name":"huge","uid":"1","resourceVersion":"1","annotations":{"a":"`
	nodeTail = `"}}}]}`
)

// writeHuge writes a list with one Node that has a huge annotation.
func writeHuge(w io.Writer) error {
	if _, err := io.WriteString(w, listHead+nodeHead); err != nil {
		return err
	}
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range hugeAnnotation >> 20 {
		if _, err := w.Write(chunk); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, nodeTail)
	return err
}

// hugeNode is small when it is compressed.
func hugeNode(t *testing.T) http.HandlerFunc {
	t.Helper()
	b := &bytes.Buffer{}
	z, err := gzip.NewWriterLevel(b, gzip.BestSpeed)
	must(t, err)
	must(t, writeHuge(z))
	must(t, z.Close())
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(b.Bytes())
	}
}

func hugePlainNode(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = writeHuge(w)
}

func hugeError(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = io.WriteString(w, bodyMark)
	_ = writeHuge(w)
}

func emptyList(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, listHead+`]}`)
}

// endlessWatch sends new Nodes of 64 KB each, as long as the client reads.
func endlessWatch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	text := strings.Repeat("x", 64<<10)
	for i := 0; r.Context().Err() == nil; i++ {
		if _, err := fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"n-%d","uid":"%d","resourceVersion":"%d","annotations":{"a":%q}}}}`+"\n", i, i, i+2, text); err != nil {
			return
		}
	}
}

func manyNodes(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, listHead)
	for i := range 1_000_000 {
		if i > 0 {
			_, _ = io.WriteString(w, ",")
		}
		if _, err := fmt.Fprintf(w, `{"metadata":{"name":"n-%d","uid":"%d","resourceVersion":"1","labels":{"a":"b"}}}`, i, i); err != nil {
			return
		}
	}
	_, _ = io.WriteString(w, `]}`)
}

// drip sends a byte per second.
func drip(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if _, err := io.WriteString(w, " "); err != nil {
			return
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// redirecting redirects all requests to another server, which must get no request.
func redirecting(t *testing.T) http.HandlerFunc {
	t.Helper()
	to := kit.Listen(t, "127.0.0.1", false, secretive)
	t.Cleanup(func() {
		if n := to.Connections(); n > 0 {
			t.Errorf("%d redirects were followed", n)
		}
	})
	return func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}
}

func otherKind(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]any{"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": bodyMark}, "items": []any{map[string]any{"spec": bodyMark, "metadata": []any{bodyMark}}}})
}

func invalidJSON(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":%s`, bodyMark)
}

// statusWithBody sends an error like an API server, with a message of its own.
func statusWithBody(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: bodyMark, Details: &metav1.StatusDetails{Name: bodyMark, Causes: []metav1.StatusCause{{Message: bodyMark}}},
	})
}

// nodesOfOthers lists the Node of the victim, which joined another cluster, as a Node to be
// drained.
func nodesOfOthers(t *testing.T, s *stage) http.HandlerFunc {
	t.Helper()
	n := &corev1.Node{}
	must(t, plane.Target.Client.Get(t.Context(), client.ObjectKey{Name: s.victim.node}, n))
	n.Kind, n.APIVersion = "Node", "v1"
	n.Annotations[machinev1alpha1.AnnotationReplace] = "true"
	n.Spec.Unschedulable = true
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	return func(w http.ResponseWriter, _ *http.Request) {
		answer(w, corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Node{*n}})
	}
}
