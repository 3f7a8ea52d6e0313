package probe

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHTTPIsReadyOnlyOn200(t *testing.T) {
	code := http.StatusServiceUnavailable
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	defer s.Close()
	if err := HTTP(context.Background(), s.Client(), s.URL); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("got %v, want the status", err)
	}
	code = http.StatusOK
	if err := HTTP(context.Background(), s.Client(), s.URL); err != nil {
		t.Error(err)
	}
}

func TestTCPIsReadyWhenSomethingListens(t *testing.T) {
	s := httptest.NewServer(nil)
	address := s.Listener.Addr().String()
	if err := TCP(context.Background(), address); err != nil {
		t.Error(err)
	}
	s.Close()
	if err := TCP(context.Background(), address); err == nil {
		t.Error("nothing listens, but no error")
	}
}
