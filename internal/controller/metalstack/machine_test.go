package metalstack

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/apis/metalstack/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

func errorIn(err error) *native.Error {
	var e *native.Error
	errors.As(err, &e)
	return e
}

// machineOf returns an allocated machine with the fields in JSON.
func machineOf(t *testing.T, text string) machine {
	t.Helper()
	m := machine{Allocation: &allocation{}}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestStates(t *testing.T) {
	for name, tc := range map[string]struct {
		machine string
		// new is the state of a VM that never ran, old that of one that ran.
		new, old native.State
		text     string
	}{
		"NoEvent":           {machine: `{}`, new: native.StateCreating, old: native.StateStopped, text: "no provisioning event"},
		"Waiting":           {machine: `{"events": {"log": [{"event": "Waiting"}]}}`, new: native.StateCreating, old: native.StateStopped, text: "Waiting"},
		"Installing":        {machine: `{"events": {"log": [{"event": "Installing", "message": "to disk"}, {"event": "Phoned Home"}]}}`, new: native.StateCreating, old: native.StateStopped, text: "Installing (to disk)"},
		"PhonedHome":        {machine: `{"liveliness": "Alive", "events": {"log": [{"event": "Phoned Home", "message": "phoned home"}, {"event": "Installing"}]}}`, new: native.StateRunning, old: native.StateRunning, text: "Phoned Home"},
		"NoEventForMinutes": {machine: `{"liveliness": "Unknown", "events": {"log": [{"event": "Phoned Home"}]}}`, new: native.StateRunning, old: native.StateRunning, text: "Phoned Home, liveliness Unknown"},
		"PoweredOff":        {machine: `{"events": {"log": [{"event": "Planned Reboot", "message": "OFF"}, {"event": "Phoned Home"}]}}`, new: native.StateStopped, old: native.StateStopped, text: "Planned Reboot (OFF)"},
		"Rebooting":         {machine: `{"events": {"log": [{"event": "Planned Reboot", "message": "RESET"}]}}`, new: native.StateCreating, old: native.StateRunning, text: "Planned Reboot (RESET)"},
		"Crashed":           {machine: `{"events": {"log": [{"event": "Crashed"}]}}`, new: native.StateCreating, old: native.StateStopped, text: "Crashed"},
		"ACrashLoop": {
			machine: `{"events": {"crash_loop": true, "last_error_event": {"event": "Crashed", "message": "kernel panic"}, "log": [{"event": "PXE Booting"}]}}`,
			new:     native.StateCreating, old: native.StateStopped, text: "PXE Booting, crash loop since Crashed kernel panic",
		},
		"Locked": {
			machine: `{"state": {"value": "LOCKED", "description": "under repair", "issuer": "ops@example.org"}, "events": {"log": [{"event": "Phoned Home"}]}}`,
			new:     native.StateRunning, old: native.StateRunning, text: "Phoned Home, LOCKED: under repair (ops@example.org)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := machineOf(t, tc.machine)
			if s := stateOf(m, false); s != tc.new {
				t.Errorf("a new VM is %s, want %s", s, tc.new)
			}
			if s := stateOf(m, true); s != tc.old {
				t.Errorf("a VM that ran is %s, want %s", s, tc.old)
			}
			if m.text() != tc.text {
				t.Errorf("text %q, want %q", m.text(), tc.text)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	m := machineOf(t, `{"allocation": {"networks": [
		{"private": true, "ips": ["10.0.0.2", "fd00::2", "10.0.0.2"]}, {"underlay": true, "ips": ["10.1.0.1"]}, {"ips": ["212.34.0.9", "none"]}]}}`)
	var out []string
	for _, a := range m.addresses() {
		out = append(out, a.Type+" "+a.Address)
	}
	if got, want := strings.Join(out, ", "), "InternalIP 10.0.0.2, InternalIP fd00::2, ExternalIP 212.34.0.9"; got != want {
		t.Errorf("addresses %s, want %s", got, want)
	}
}

func TestErrorsOfTheAPI(t *testing.T) {
	for name, tc := range map[string]struct {
		status     int
		body, want string
		notFound   bool
	}{
		"AnObject":          {404, `{"statuscode": 404, "message": "no machine with id \"x\" found"}`, `no machine with id "x" found (status 404)`, true},
		"AString":           {403, `"tenant x not allowed"`, "tenant x not allowed (status 403)", false},
		"AProxy":            {404, `<html>`, "Not Found (status 404)", false},
		"AProxyWithJSON":    {404, `{"message": "no route"}`, "no route (status 404)", false},
		"AnEmptyBody":       {503, ``, "Service Unavailable (status 503)", false},
		"AMessageOfPages":   {422, `{"statuscode": 422, "message": "` + strings.Repeat("x", 600) + `"}`, strings.Repeat("x", 512) + " (status 422)", false},
		"AnotherStatusCode": {404, `{"statuscode": 400, "message": "x"}`, "x (status 404)", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := errorOf(tc.status, []byte(tc.body))
			if err.Error() != tc.want || isNotFound(err) != tc.notFound {
				t.Errorf("%q, not found %t; want %q", err, isNotFound(err), tc.want)
			}
		})
	}
}

func TestCredentialsAreValidated(t *testing.T) {
	for name, tc := range map[string]struct {
		c    credentials
		want string
	}{
		"AKey":               {credentials{HMAC: "k"}, ""},
		"AKeyOfAUser":        {credentials{HMAC: "k", HMACAuthType: "Metal-Admin"}, ""},
		"AToken":             {credentials{Token: "a.b.c"}, ""},
		"Nothing":            {credentials{}, "credentials: hmac or token"},
		"Both":               {credentials{HMAC: "k", Token: "t"}, "credentials: hmac and token"},
		"ATokenWithAUser":    {credentials{Token: "t", HMACAuthType: "Metal-Edit"}, "credentials: hmacAuthType: is not used"},
		"AnUnknownUser":      {credentials{HMAC: "k", HMACAuthType: "metal-edit"}, `invalid value "metal-edit": must be one of Metal-View, Metal-Edit, Metal-Admin`},
		"ATokenWithANewline": {credentials{Token: "t\n"}, "credentials: token"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.c.validate()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestASignature compares a signature with one that the package security of metal-stack computed.
func TestASignature(t *testing.T) {
	req, err := http.NewRequest(http.MethodPost, "https://x/metal/v1/machine/find", nil)
	if err != nil {
		t.Fatal(err)
	}
	sign(req, credentials{HMAC: "a-key"}, time.Date(2026, 11, 26, 13, 0, 0, 0, time.FixedZone("CET", 3600)), "ABCDEFGHIJKLMNOPQRSTUVWX")
	for header, want := range map[string]string{
		"X-Date": "2026-11-26T12:00:00Z", "X-Data-Salt": "ABCDEFGHIJKLMNOPQRSTUVWX",
		"Authorization": "Metal-Edit 954b5f013773b6fe47c9ab2b7460dbb74c1568754a9cf7d59e46fad5a22dd56f",
	} {
		if got := req.Header.Get(header); got != want {
			t.Errorf("%s is %q, want %q", header, got, want)
		}
	}
}

// TestACallIsSignedWhenItIsSent holds a call back for longer than the metal-api accepts a signature.
func TestACallIsSignedWhenItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), 0
		next := transportFunc(func(req *http.Request) (*http.Response, error) {
			calls++
			at, err := time.Parse(time.RFC3339, req.Header.Get("X-Date"))
			if err != nil || time.Since(at) > time.Second {
				t.Errorf("call %d has the date %s after %s", calls, req.Header.Get("X-Date"), time.Since(began))
			}
			resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: req}
			if calls == 1 {
				resp.StatusCode = http.StatusTooManyRequests
				resp.Header.Set("Retry-After", "17")
			}
			return resp, nil
		})
		c, err := newCaller(v1alpha1.ProviderConfigSpec{Server: "https://x/metal/"}, credentials{HMAC: "k"}, next, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.call(t.Context(), http.MethodGet, "/v1/project/p", nil, &struct{}{})
		if calls != 2 {
			t.Errorf("%d calls, want 2", calls)
		}
	})
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
