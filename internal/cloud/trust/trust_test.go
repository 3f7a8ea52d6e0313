package trust

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestATransportTrustsABundle(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	right := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	cases := map[string]struct {
		bundle    []byte
		path, err string
	}{
		"OfTheServer":        {right, "/", ""},
		"OfTheSystem":        {nil, "/", "certificate signed by unknown authority"},
		"WithoutCertificate": {[]byte("hello"), "/", "caBundle: must be certificates in PEM format"},
		"AndDoesNotWait":     {right, "/slow", "timeout awaiting response headers"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			transport, err := Transport(tc.bundle, 200*time.Millisecond)
			if err == nil {
				defer transport.CloseIdleConnections()
				err = get(t, transport, server.URL+tc.path)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func get(t *testing.T, transport http.RoundTripper, url string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}
