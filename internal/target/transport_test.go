package target

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAnAPIServerThatPrefersProtobufIsAskedForJSON has a server that responds as a real one does: with protobuf
// to each client that accepts it.
func TestAnAPIServerThatPrefersProtobufIsAskedForJSON(t *testing.T) {
	conn := connTo(t, server(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept")+r.Header.Get("Content-Type"), "protobuf") {
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			_, _ = w.Write([]byte("k8s\x00"))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}})
	}).URL)
	if _, err := conn.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a list: %v", err)
	}
	if _, err := conn.Probe(t.Context()); err != nil {
		t.Errorf("a probe: %v", err)
	}
}
