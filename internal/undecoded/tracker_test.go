package undecoded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/schematest"
	"github.com/drover-dev/drover/internal/stored"
	"github.com/drover-dev/drover/internal/undecoded"
	"github.com/drover-dev/drover/test/patience"
)

// apiServer serves Machines as they are stored, decodable or not.
type apiServer struct {
	// streams is whether it sends a list as the first events of a watch.
	streams bool

	mu       sync.Mutex
	version  int
	machines map[string]string // by their names
	events   chan string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	q := r.URL.Query()
	switch {
	case q.Get("watch") == "":
		s.mu.Lock()
		defer s.mu.Unlock()
		var items []string
		for _, m := range s.machines {
			items = append(items, m)
		}
		fmt.Fprintf(w, `{"apiVersion":"machine.drover.dev/v1alpha1","kind":"MachineList","metadata":{"resourceVersion":"%d"},"items":[%s]}`, s.version, strings.Join(items, ","))
	case q.Get("sendInitialEvents") == "true" && !s.streams:
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Invalid","code":422}`)
	default:
		s.watch(w, r, q.Get("sendInitialEvents") == "true")
	}
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, initial bool) {
	send := func(event, object string) {
		fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", event, object)
		w.(http.Flusher).Flush()
	}
	s.mu.Lock()
	if initial {
		for _, m := range s.machines {
			send("ADDED", m)
		}
		send("BOOKMARK", fmt.Sprintf(`{"apiVersion":"machine.drover.dev/v1alpha1","kind":"Machine","metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}`, s.version))
	}
	s.mu.Unlock()
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-s.events:
			event, object, _ := strings.Cut(e, " ")
			send(event, object)
		}
	}
}

// put stores a Machine, and returns its text.
func (s *apiServer) put(namespace, name, spec string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.machines[name] = fmt.Sprintf(`{"apiVersion":"machine.drover.dev/v1alpha1","kind":"Machine","metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":"%d"},"spec":%s}`,
		namespace, name, "uid-"+name, s.version, spec)
	return s.machines[name]
}

// manager has the methods of a manager that a Tracker calls.
type manager struct {
	ctrl.Manager
	scheme *runtime.Scheme
	events *record.FakeRecorder
}

func (m manager) GetScheme() *runtime.Scheme                      { return m.scheme }
func (m manager) GetLogger() logr.Logger                          { return logr.Discard() }
func (m manager) GetEventRecorderFor(string) record.EventRecorder { return m.events }

// series of the metric that the registry of all providers has, by the name of the object.
func series(t *testing.T) map[string]string {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range families {
		if f.GetName() != "drover_undecodable_object" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			out[labels["name"]] = labels["group"] + " " + labels["kind"] + " " + labels["namespace"]
		}
	}
	return out
}

// start starts a cache of Machines.
func start(t *testing.T, s *apiServer) (cache.Cache, *record.FakeRecorder) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1alpha1.MachineGroupVersionKind, meta.RESTScopeNamespace)

	old := metrics.Registry
	metrics.Registry = prometheus.NewRegistry()
	t.Cleanup(func() { metrics.Registry = old })
	tracker, m := undecoded.NewTracker(), manager{scheme: scheme, events: record.NewFakeRecorder(1000)}
	if err := tracker.Report(m, "provider-drover"); err != nil {
		t.Fatal(err)
	}
	c, err := cache.New(&rest.Config{Host: server.URL}, cache.Options{Scheme: scheme, Mapper: mapper, NewInformer: tracker.NewInformer})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	if _, err := c.GetInformer(ctx, &v1alpha1.Machine{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Start(ctx) }()
	synced, give := context.WithTimeout(ctx, patience.Limit())
	defer give()
	if !c.WaitForCacheSync(synced) {
		t.Fatal("the cache does not sync")
	}
	return c, m.events
}

// eventually waits for an effect of a watch.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	patience.Until(t, "not seen: "+what, is)
}

func TestOneMachineThatCannotBeDecodedStopsNoOther(t *testing.T) {
	for name, streams := range map[string]bool{"List": false, "WatchList": true} {
		t.Run(name, func(t *testing.T) {
			s := &apiServer{streams: streams, machines: map[string]string{}, events: make(chan string)}
			s.put("team-b", "forever", `{"creationTimeout":"9999999h"}`)
			s.put("team-a", "good", `{"version":"v1.35.4"}`)
			c, events := start(t, s)
			list := &v1alpha1.MachineList{}
			if err := c.List(t.Context(), list); err != nil || len(list.Items) != 2 {
				t.Fatalf("%d Machines, error %v", len(list.Items), err)
			}
			faults := func(name, namespace string) (string, error) {
				m := &v1alpha1.Machine{}
				err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, m)
				return stored.Faults(m), err
			}
			eventually(t, "the series", func() bool { return series(t)["forever"] == "machine.drover.dev Machine team-b" })
			if len(series(t)) != 1 {
				t.Errorf("series %v", series(t))
			}
			if e := <-events.Events; !strings.Contains(e, v1alpha1.ReasonNotDecodable) || !strings.Contains(e, "spec.creationTimeout") {
				t.Errorf("event %q", e)
			}

			// A watch continues after an object that becomes bad.
			s.events <- "MODIFIED " + s.put("team-a", "good", `{"drain":{"hookTimeout":"99999999h"}}`)
			eventually(t, "the bad object of a watch", func() bool { f, err := faults("good", "team-a"); return err == nil && f != "" })
			s.events <- "ADDED " + s.put("team-a", "later", `{"version":"v1.35.4"}`)
			eventually(t, "an object after it", func() bool { f, err := faults("later", "team-a"); return err == nil && f == "" })
			s.events <- "MODIFIED " + s.put("team-a", "good", `{"version":"v1.35.4"}`)
			s.events <- "DELETED " + s.put("team-b", "forever", `{"creationTimeout":"9999999h"}`)
			eventually(t, "no series", func() bool { return len(series(t)) == 0 })
		})
	}
}

// TestRandomObjectsOfOneNamespaceStopNoMachineOfAnother puts values that no schema accepts into each field of a Machine.
func TestRandomObjectsOfOneNamespaceStopNoMachineOfAnother(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := &apiServer{machines: map[string]string{}, events: make(chan string)}
	bad := 0
	for _, l := range schematest.AllLeaves(t) {
		if l.Kind != v1alpha1.MachineGroupVersionKind {
			continue
		}
		if spec := l.Object(anything(r, 2))["spec"]; spec != nil {
			bad++
			s.put("team-b", fmt.Sprintf("bad-%d", bad), text(spec))
		}
	}
	const good = 20
	for i := range good {
		s.put("team-a", fmt.Sprintf("good-%d", i), `{"version":"v1.35.4"}`)
	}
	c, _ := start(t, s)
	for namespace, want := range map[string]int{"team-a": good, "team-b": bad} {
		list := &v1alpha1.MachineList{}
		if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil || len(list.Items) != want {
			t.Errorf("namespace %s: %d Machines, want %d, error %v", namespace, len(list.Items), want, err)
		}
		for _, m := range list.Items {
			if namespace == "team-a" && (stored.Faults(&m) != "" || m.Spec.Version != "v1.35.4") {
				t.Errorf("%s has the faults %q", m.Name, stored.Faults(&m))
			}
		}
	}
	for i := range 50 {
		s.events <- "MODIFIED " + s.put("team-b", fmt.Sprintf("bad-%d", 1+r.IntN(bad)), `{"drain":{"timeout":`+text(anything(r, 1))+`}}`)
		s.events <- "MODIFIED " + s.put("team-a", fmt.Sprintf("good-%d", i%good), fmt.Sprintf(`{"version":"v1.36.%d"}`, i))
		m := &v1alpha1.Machine{}
		eventually(t, "a change of a Machine of another namespace", func() bool {
			return c.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: fmt.Sprintf("good-%d", i%good)}, m) == nil && m.Spec.Version == fmt.Sprintf("v1.36.%d", i)
		})
	}
}

// TestOneObjectOfAnyKindStopsNoOther decodes lists of two objects, of each kind and with each field of it.
func TestOneObjectOfAnyKindStopsNoOther(t *testing.T) {
	s := schematest.Scheme(t)
	r := rand.New(rand.NewPCG(3, 4))
	faults := 0
	for _, l := range schematest.AllLeaves(t) {
		bad := l.Object(anything(r, 2))
		bad["metadata"] = map[string]any{"name": "bad", "finalizers": []any{"f"}}
		good := map[string]any{"metadata": map[string]any{"name": "good"}}
		list, err := s.New(l.Kind.GroupVersion().WithKind(l.Kind.Kind + "List"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text(map[string]any{"items": []any{bad, good}})), list); err != nil {
			t.Errorf("%s: %v", l, err)
			continue
		}
		items, err := meta.ExtractList(list)
		if err != nil || len(items) != 2 {
			t.Fatalf("%s: %d items, error %v", l, len(items), err)
		}
		first, ok := items[0].(client.Object)
		second, ok2 := items[1].(client.Object)
		if !ok || !ok2 || first.GetName() != "bad" || len(first.GetFinalizers()) != 1 || second.GetName() != "good" || stored.Faults(second) != "" {
			t.Errorf("%s: decoded %+v and %+v", l, items[0], items[1])
		}
		if stored.Faults(items[0]) != "" {
			faults++
		}
	}
	if faults < 1000 {
		t.Errorf("only %d objects had a field that cannot be decoded", faults)
	}
}

// anything returns a random value of JSON.
func anything(r *rand.Rand, depth int) any {
	n := 7
	if depth == 0 {
		n = 5
	}
	switch r.IntN(n) {
	case 0:
		return "9999999h"
	case 1:
		return "2026-11-27t08:00:00z"
	case 2:
		return 1e19
	case 3:
		return 1.5
	case 4:
		return r.IntN(2) == 0
	case 5:
		return []any{anything(r, depth-1)}
	default:
		return map[string]any{"key": anything(r, depth-1)}
	}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(b)
}
