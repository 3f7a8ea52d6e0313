package target

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-dev/drover/test/patience"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func jsonServer(t *testing.T, answer func(w io.Writer, r *http.Request)) *Conn {
	t.Helper()
	return connTo(t, server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			_, _ = io.WriteString(w, `{"gitVersion":"v1"}`)
			return
		}
		answer(w, r)
	}).URL)
}

// repeat writes a text n times, or until the reader stops.
func repeat(w io.Writer, text string, n int) {
	chunk := strings.Repeat(text, 1000)
	for range n / 1000 {
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
	}
}

// TestAHostileAnswerIsNotKept bounds the cost of one response. heap is how much a cluster may add to the heap
// in MiB, at any time.
func TestAHostileAnswerIsNotKept(t *testing.T) {
	const heap = 400 << 20
	for name, tc := range map[string]struct {
		answer func(io.Writer, *http.Request)
		want   error
	}{
		"AnEndlessText": {func(w io.Writer, _ *http.Request) {
			_, _ = io.WriteString(w, `{"kind":"NodeList","items":[{"metadata":{"annotations":{"a":"`)
			repeat(w, "x", 1<<30)
		}, errTooLarge},
		"AnEndlessListOfEmptyObjects": {func(w io.Writer, _ *http.Request) {
			_, _ = io.WriteString(w, `{"kind":"NodeList","items":[{}`)
			repeat(w, ",{}", 1<<30)
		}, errTooLarge},
		"ManyTaintsOfOneNode": {func(w io.Writer, _ *http.Request) {
			_, _ = io.WriteString(w, `{"kind":"NodeList","items":[{"spec":{"taints":[{}`)
			repeat(w, ",{}", 1<<30)
		}, errTooLarge},
		"ManyLabels": {func(w io.Writer, _ *http.Request) {
			_, _ = io.WriteString(w, `{"kind":"NodeList","items":[{"metadata":{"labels":{`)
			for i := 0; ; i++ {
				if _, err := fmt.Fprintf(w, `"%d":"",`, i); err != nil {
					return
				}
			}
		}, errTooLarge},
		"AnEndlessDepth": {func(w io.Writer, _ *http.Request) { repeat(w, "[", 1<<30) }, errTooLarge},
		"EndlessPages": {func(w io.Writer, _ *http.Request) {
			list := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1", Continue: "more"}}
			list.Items = []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{"a": strings.Repeat("x", 2<<20)}}}}
			_ = json.NewEncoder(w).Encode(list)
		}, errTooLarge},
		"ATextThatIsCompressed": {func(w io.Writer, _ *http.Request) {
			w.(http.ResponseWriter).Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer func() { _ = z.Close() }()
			_, _ = io.WriteString(z, `{"kind":"NodeList","items":[{"metadata":{"annotations":{"a":"`)
			repeat(z, "x", 400<<20)
			_, _ = io.WriteString(z, `"}}}]}`)
		}, errEncoded},
		"NoJSON": {func(w io.Writer, _ *http.Request) {
			w.(http.ResponseWriter).Header().Set("Content-Type", "text/html")
			repeat(w, "<p>", 1<<30)
		}, errNotJSON},
	} {
		t.Run(name, func(t *testing.T) {
			conn := jsonServer(t, tc.answer)
			runtime.GC()
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			var peak atomic.Uint64
			done := make(chan struct{})
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-done:
						return
					case <-time.After(20 * time.Millisecond):
						runtime.ReadMemStats(&now)
						peak.Store(max(peak.Load(), now.HeapAlloc))
					}
				}
			}()
			var err error
			if name == "EndlessPages" {
				patience.Eventually(t, func(ctx context.Context) string {
					if _, err = conn.Nodes(ctx, "a", "b", "c"); err == nil || strings.Contains(err.Error(), "no answer in time") {
						return fmt.Sprintf("error %v", err)
					}
					return ""
				})
			} else {
				_, err = conn.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
				err = conn.Classify(err)
			}
			close(done)
			<-stopped
			if !Is(err, Unreachable) || !strings.Contains(err.Error(), tc.want.Error()) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			grown := peak.Load() - min(peak.Load(), before.HeapAlloc)
			t.Logf("the heap grew by %d MiB", grown>>20)
			if grown > heap {
				t.Errorf("want %d MiB at most", heap>>20)
			}
		})
	}
}

func TestAWatchIsBoundedByItsEventsAndNotAsAWhole(t *testing.T) {
	event := func(size int) string {
		return fmt.Sprintf(`{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"n","annotations":{"a":%q}}}}`+"\n", strings.Repeat("x", size))
	}
	m := meter{bounds: objectBounds, each: true}
	for range 100 {
		if err := m.add([]byte(event(1 << 20))); err != nil {
			t.Fatal(err)
		}
	}
	if m.ended != 100 {
		t.Errorf("%d events, want 100", m.ended)
	}
	if err := m.add([]byte(event(5 << 20))); !errors.Is(err, errTooLarge) {
		t.Errorf("a large event: error %v", err)
	}
	m = meter{bounds: objectBounds, each: true}
	// Lines do not end an event.
	if err := m.add([]byte(`{"type":` + strings.Repeat("\n", 5<<20))); !errors.Is(err, errTooLarge) {
		t.Errorf("an event of many lines: error %v", err)
	}
}

func TestAWatchHasAPace(t *testing.T) {
	var sent atomic.Int64
	conn := jsonServer(t, func(w io.Writer, _ *http.Request) {
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","resourceVersion":"%d"}}}`+"\n", i+1); err != nil {
				return
			}
			sent.Add(1)
		}
	})
	w, err := conn.link.watching.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	// A busy computer delivers them later, and never earlier.
	began := time.Now()
	for range eventBurst + 2*eventPace {
		<-w.ResultChan()
	}
	if took := time.Since(began); took < 1900*time.Millisecond {
		t.Errorf("%d events in %s, want a burst of %d and %d a second", eventBurst+2*eventPace, took, eventBurst, eventPace)
	}
}

func TestAClusterWithTooManyNodesIsRefused(t *testing.T) {
	var lists atomic.Int32
	conn := jsonServer(t, func(w io.Writer, r *http.Request) {
		if isWatch(r) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		if r.URL.Path == "/api/v1/nodes" {
			lists.Add(1)
		}
		_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"n"}}`)
		for i := range maxKept {
			_, _ = fmt.Fprintf(w, `,{"metadata":{"name":"n%d"}}`, i)
		}
		_, _ = io.WriteString(w, `]}`)
	})
	patience.Eventually(t, func(ctx context.Context) string {
		if _, err := conn.Nodes(ctx, "", "n1", ""); !Is(err, Unreachable) || !strings.Contains(err.Error(), errTooLarge.Error()) {
			return fmt.Sprintf("error %v", err)
		}
		return ""
	})
	if n := len(conn.link.nodes.informer.GetIndexer().ListKeys()); n > 0 {
		t.Errorf("%d Nodes are kept", n)
	}
	for range 10 {
		_, _ = conn.Nodes(t.Context(), "", "n1", "")
	}
	if lists.Load() != 1 {
		t.Errorf("%d lists, want one a minute", lists.Load())
	}
}

func TestOfANodeIsKeptWhatIsRead(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"},
		Annotations:   map[string]string{"small": "x", "huge": strings.Repeat("x", 1<<20), "cluster.drover.dev/applied": "{}"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
	}}
	n.Spec.ProviderID, n.Spec.Unschedulable, n.Spec.Taints, n.Spec.PodCIDR = "p", true, []corev1.Taint{{Key: "t"}}, "10.0.0.0/24"
	n.Status.Conditions, n.Status.Images = []corev1.NodeCondition{{Type: "Ready"}}, []corev1.ContainerImage{{Names: []string{"i"}}}
	obj, err := strip(n)
	got, ok := obj.(*corev1.Node)
	if err != nil || !ok {
		t.Fatal(obj, err)
	}
	if got.Name != "n" || got.UID != "u" || got.ResourceVersion != "7" || got.Labels["a"] != "b" || got.Spec.ProviderID != "p" || !got.Spec.Unschedulable ||
		len(got.Spec.Taints) != 1 || len(got.Status.Conditions) != 1 || len(got.Annotations) != 2 || got.Annotations["small"] != "x" || got.Annotations["cluster.drover.dev/applied"] != "{}" {
		t.Errorf("kept %+v", got)
	}
	if got.ManagedFields != nil || got.Status.Images != nil || got.Spec.PodCIDR != "" {
		t.Errorf("kept what nothing reads: %+v", got)
	}
}

// FuzzMeter compares with the decoder: each stream of JSON values within the bounds is accepted,
// and each value counts once.
func FuzzMeter(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[{},{"b":"]\"}"}]}`, `{"a":"\\"}{}`, `[[[`, `]]]`, `"{`, `{"a":"é\u0022"}`, "{}\n{}\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m := meter{bounds: bounds{bytes: 1 << 20, values: 1 << 20, objects: 1 << 20}, each: true}
		err := m.add([]byte(s))
		d, values := json.NewDecoder(strings.NewReader(s)), 0
		for {
			var v json.RawMessage
			derr := d.Decode(&v)
			if errors.Is(derr, io.EOF) {
				break
			}
			if derr != nil {
				return // Text that is no JSON ends the stream in the decoder.
			}
			if v[0] == '{' || v[0] == '[' {
				values++
			}
		}
		if err != nil && strings.Count(s, "[")+strings.Count(s, "{") <= maxDepth {
			t.Errorf("%q: %v", s, err)
		}
		if err == nil && m.ended != values {
			t.Errorf("%q: %d values, want %d", s, m.ended, values)
		}
	})
}

func TestOnlyListsMayBeLarge(t *testing.T) {
	for name, tc := range map[string]struct {
		method, url string
		want        bool
	}{
		"Nodes":                       {"GET", "/api/v1/nodes", true},
		"NodesBelowAPath":             {"GET", "/k8s/clusters/c-1/api/v1/nodes?limit=500", true},
		"SecretsOfANamespace":         {"GET", "/api/v1/namespaces/kube-system/secrets?labelSelector=a", true},
		"RequestsOfAGroup":            {"GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests", true},
		"BudgetsOfANamespace":         {"GET", "/apis/policy/v1/namespaces/ns/poddisruptionbudgets", true},
		"TheFirstNode":                {"GET", "/api/v1/nodes?limit=1", false},
		"ANode":                       {"GET", "/api/v1/nodes/n", false},
		"ANamespace":                  {"GET", "/api/v1/namespaces/ns", false},
		"ASecret":                     {"GET", "/api/v1/namespaces/kube-system/secrets/s", false},
		"TheAnswerToAPatch":           {"PATCH", "/api/v1/nodes/n", false},
		"TheAnswerToACreation":        {"POST", "/api/v1/namespaces/kube-system/secrets", false},
		"TheAnswerToAnEviction":       {"POST", "/api/v1/namespaces/ns/pods/p/eviction", false},
		"AllThatALimitOfNoneReturns":  {"GET", "/api/v1/nodes?limit=0", true},
		"ARequestWithALimitOfNoSense": {"GET", "/api/v1/nodes?limit=x", true},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tc.method, "https://x"+tc.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := isList(req); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
