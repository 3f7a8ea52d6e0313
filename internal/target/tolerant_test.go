package target

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// tooLate is how an API server sends a time of the year 10000, which it accepts by protobuf.
const tooLate = "10000-01-01T00:00:00Z"

// undecodable has an object of a target cluster with a field that no client can decode, by the path of its list.
var undecodable = map[string]struct{ apiVersion, kind, field string }{
	"/api/v1/nodes":                                           {"v1", "NodeList", `"spec":{"providerID":"p","taints":[{"key":"k","effect":"NoSchedule","timeAdded":"` + tooLate + `"}]}`},
	"/api/v1/pods":                                            {"v1", "PodList", `"spec":{"nodeName":"n"},"status":{"startTime":"` + tooLate + `"}`},
	"/apis/policy/v1/poddisruptionbudgets":                    {"policy/v1", "PodDisruptionBudgetList", `"status":{"disruptedPods":{"a":"` + tooLate + `"}}`},
	"/apis/storage.k8s.io/v1/volumeattachments":               {"storage.k8s.io/v1", "VolumeAttachmentList", `"spec":{"nodeName":"n"},"status":{"attachError":{"time":"` + tooLate + `"}}`},
	"/apis/certificates.k8s.io/v1/certificatesigningrequests": {"certificates.k8s.io/v1", "CertificateSigningRequestList", `"spec":{"username":"u","expirationSeconds":10000000000000000000}`},
}

// aCluster serves lists of two objects each, of which the first has a field that no client can decode.
func aCluster(t *testing.T, field func(string) string) *link {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		of, ok := undecodable[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"bad","uid":"1"},%s},{"metadata":{"name":"good","uid":"2"}}]}`,
			of.apiVersion, of.kind, field(of.field))
	}))
	t.Cleanup(s.Close)
	l, err := newLink(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, nil, newShared(), time.Now, observer{node: func(Ref, NodeIdentity) {}, request: func(Ref, string) {}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOneObjectOfATargetClusterThatCannotBeDecodedHidesNoOther(t *testing.T) {
	l := aCluster(t, func(field string) string { return field })
	ctx, all := t.Context(), metav1.ListOptions{}
	var got []string
	note := func(what string, names []string, err error) {
		if err != nil || len(names) != 2 || names[0] != "bad" || names[1] != "good" {
			t.Errorf("%s: %v, error %v", what, names, err)
		}
		got = append(got, names...)
	}
	nodes, err := l.kube.CoreV1().Nodes().List(ctx, all)
	note("Nodes", namesOf(nodes.Items, func(i int) string { return nodes.Items[i].Name }), err)
	if err == nil && (nodes.Items[0].Spec.ProviderID != "p" || len(nodes.Items[0].Spec.Taints) != 1 || nodes.Items[0].Spec.Taints[0].TimeAdded != nil) {
		t.Errorf("Node %+v", nodes.Items[0].Spec)
	}
	pods, err := l.kube.CoreV1().Pods("").List(ctx, all)
	note("pods", namesOf(pods.Items, func(i int) string { return pods.Items[i].Name }), err)
	budgets, err := l.kube.PolicyV1().PodDisruptionBudgets("").List(ctx, all)
	note("PodDisruptionBudgets", namesOf(budgets.Items, func(i int) string { return budgets.Items[i].Name }), err)
	attachments, err := l.kube.StorageV1().VolumeAttachments().List(ctx, all)
	note("VolumeAttachments", namesOf(attachments.Items, func(i int) string { return attachments.Items[i].Name }), err)
	requests, err := l.kube.CertificatesV1().CertificateSigningRequests().List(ctx, all)
	note("CertificateSigningRequests", namesOf(requests.Items, func(i int) string { return requests.Items[i].Name }), err)
	if len(got) != 10 {
		t.Errorf("objects %v", got)
	}
}

func namesOf[T any](items []T, name func(int) string) []string {
	out := make([]string, 0, len(items))
	for i := range items {
		out = append(out, name(i))
	}
	return out
}

func TestTheWatchOfNodesHasAllNodesDespiteOneThatCannotBeDecoded(t *testing.T) {
	l := aCluster(t, func(field string) string { return field })
	l.attach(ClusterRef("c"))
	n, err := l.watch(ClusterRef("c"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.detach(ClusterRef("c"))
	for _, name := range []string{"bad", "good"} {
		if found, err := n.find(t.Context(), "", name, ""); err != nil || len(found) != 1 {
			t.Errorf("Node %s: %v, error %v", name, found, err)
		}
	}
}

// TestRandomObjectsOfATargetClusterHideNoOther has any JSON as any part of the first object.
func TestRandomObjectsOfATargetClusterHideNoOther(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	l := aCluster(t, func(string) string {
		b, _ := json.Marshal(map[string]any{[]string{"spec", "status"}[r.IntN(2)]: anyJSON(r, 4)})
		return string(b[1 : len(b)-1])
	})
	for range 200 {
		list, err := l.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 2 || list.Items[1].Name != "good" {
			t.Fatalf("Nodes %+v, error %v", list, err)
		}
	}
}

func anyJSON(r *rand.Rand, depth int) any {
	keys := []string{"taints", "conditions", "addresses", "key", "timeAdded", "lastHeartbeatTime", "capacity", "providerID", "unschedulable"}
	switch n := r.IntN(6); {
	case n < 2 || depth == 0:
		return []any{tooLate, 1e19, 1.5, true, nil, "x"}[r.IntN(6)]
	case n == 2:
		return []any{anyJSON(r, depth-1)}
	default:
		return map[string]any{keys[r.IntN(len(keys))]: anyJSON(r, depth-1), keys[r.IntN(len(keys))]: anyJSON(r, depth-1)}
	}
}

func TestWhatIsNoObjectIsStillAnError(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"NodeList","items":[`)
	}))
	defer s.Close()
	l, err := newLink(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, nil, newShared(), time.Now, observer{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("half a list is decoded")
	}
}
