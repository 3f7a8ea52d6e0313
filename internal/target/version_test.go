package target

import (
	"io"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// versions responds to /version as scripted, and counts the calls.
func versions(t *testing.T, answer func(call int) (status int, body string)) (conn *Conn, calls *int, now *time.Time) {
	t.Helper()
	calls = new(int)
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/version" {
			_, _ = w.Write([]byte(`{"kind": "NodeList", "apiVersion": "v1", "items": []}`))
			return
		}
		*calls++
		status, body := answer(*calls)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	conn = connTo(t, s.URL)
	at := time.Now()
	conn.link.now = func() time.Time { return at }
	return conn, calls, &at
}

const forbidden = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`

func TestTheVersionOfAnAPIServerIsReadOnceAMinute(t *testing.T) {
	conn, calls, now := versions(t, func(call int) (int, string) {
		return http.StatusOK, map[bool]string{true: `{"gitVersion": "v1.35.4"}`, false: `{"gitVersion": "v1.36.0"}`}[call == 1]
	})
	expect := func(want string, n int) {
		t.Helper()
		if v, err := conn.Version(t.Context()); err != nil || v != want || *calls != n {
			t.Errorf("version %q after %d calls, want %q after %d: %v", v, *calls, want, n, err)
		}
	}
	expect("v1.35.4", 1)
	*now = now.Add(versionAge - time.Second)
	expect("v1.35.4", 1)
	*now = now.Add(time.Second) // The API server was upgraded.
	expect("v1.36.0", 2)
}

func TestAProbeReadsTheVersionForAll(t *testing.T) {
	conn, calls, _ := versions(t, func(int) (int, string) { return http.StatusOK, `{"gitVersion": "v1.35.4"}` })
	if _, err := conn.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, err := conn.Version(t.Context()); err != nil || v != "v1.35.4" || *calls != 1 {
		t.Errorf("version %q after %d calls: %v", v, *calls, err)
	}
}

func TestAVersionThatMayNotBeReadIsUnknown(t *testing.T) {
	conn, calls, _ := versions(t, func(int) (int, string) { return http.StatusForbidden, forbidden })
	for range 2 {
		if v, err := conn.Version(t.Context()); err != nil || v != "" || *calls != 1 {
			t.Errorf("version %q after %d calls: %v", v, *calls, err)
		}
	}
}

func TestAFailedReadOfTheVersionIsNotKept(t *testing.T) {
	conn, _, _ := versions(t, func(call int) (int, string) {
		if call == 1 {
			return http.StatusOK, `{"gitVersion": [`
		}
		return http.StatusOK, `{"gitVersion": "v1.35.4"}`
	})
	if v, err := conn.Version(t.Context()); !Is(err, Unreachable) || v != "" {
		t.Errorf("version %q, error %v", v, err)
	}
	if v, err := conn.Version(t.Context()); err != nil || v != "v1.35.4" {
		t.Errorf("version %q, error %v", v, err)
	}
}

// TestAProbeThatLosesItsConnectionEndsAtOnce as it is repeated by its caller: an outage would be known 10 s later.
func TestAProbeThatLosesItsConnectionEndsAtOnce(t *testing.T) {
	calls := 0
	kube, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "https://127.0.0.1:1"}, &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		calls++
		return nil, io.EOF
	})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readVersion(t.Context(), kube); err == nil || calls != 1 {
		t.Errorf("%d calls, error %v", calls, err)
	}
}
