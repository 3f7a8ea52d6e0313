package localcloud

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type seen struct{ Method, URI, Auth, Body string }

// serve answers every call with status, header and body, and notes the call.
func serve(t *testing.T, status int, header map[string]string, body string) (*Client, *seen) {
	t.Helper()
	got := &seen{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*got = seen{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), string(b)}
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	c, err := NewClient(srv.URL+"/", "secret\n")
	if err != nil {
		t.Fatal(err)
	}
	return c, got
}

func TestCalls(t *testing.T) {
	ctx := context.Background()
	vm := `{"id":"vm-0123456789","name":"a","tags":{},"state":"Pending","createdAt":"2026-01-02T03:04:05Z"}`
	wantVM := &VM{ID: "vm-0123456789", Name: "a", Tags: map[string]string{}, State: StatePending,
		CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	cases := map[string]struct {
		answer string
		call   func(*Client) (any, error)
		sent   seen
		want   any
	}{
		"CreateVMSendsUserDataInBase64": {
			answer: vm,
			call: func(c *Client) (any, error) {
				return c.CreateVM(ctx, CreateVMRequest{Name: "a", Image: "i", Size: "s", UserData: []byte("#cloud-config")})
			},
			sent: seen{Method: "POST", URI: "/v1/vms", Body: `{"name":"a","image":"i","size":"s","userData":"I2Nsb3VkLWNvbmZpZw=="}`},
			want: wantVM,
		},
		"GetVMEscapesTheID": {
			answer: vm,
			call:   func(c *Client) (any, error) { return c.GetVM(ctx, "a/b") },
			sent:   seen{Method: "GET", URI: "/v1/vms/a%2Fb"},
			want:   wantVM,
		},
		"ListVMsSelectsByNameAndTag": {
			answer: `{"items":[` + vm + `]}`,
			call: func(c *Client) (any, error) {
				return c.ListVMs(ctx, ListVMsOptions{Name: "a", Tags: map[string]string{"k": "v&w"}})
			},
			sent: seen{Method: "GET", URI: "/v1/vms?name=a&tag=k%3Dv%26w"},
			want: []VM{*wantVM},
		},
		"UpdateVMReplacesTags": {
			answer: vm,
			call: func(c *Client) (any, error) {
				return c.UpdateVM(ctx, "x", UpdateVMRequest{Tags: map[string]string{"k": "v"}})
			},
			sent: seen{Method: "PATCH", URI: "/v1/vms/x", Body: `{"tags":{"k":"v"}}`},
			want: wantVM,
		},
		"DeleteVMReadsNoBody": {
			call: func(c *Client) (any, error) { return nil, c.DeleteVM(ctx, "x") },
			sent: seen{Method: "DELETE", URI: "/v1/vms/x"},
		},
		"RebootVMReadsNoBody": {
			call: func(c *Client) (any, error) { return nil, c.RebootVM(ctx, "x") },
			sent: seen{Method: "POST", URI: "/v1/vms/x/reboot"},
		},
		"ConsoleIsText": {
			answer: "booting\n",
			call:   func(c *Client) (any, error) { return c.Console(ctx, "x") },
			sent:   seen{Method: "GET", URI: "/v1/vms/x/console"},
			want:   "booting\n",
		},
		"ListImages": {
			answer: `{"items":[{"name":"debian-12"}]}`,
			call:   func(c *Client) (any, error) { return c.ListImages(ctx) },
			sent:   seen{Method: "GET", URI: "/v1/images"},
			want:   []Image{{Name: ImageDebian12}},
		},
		"History": {
			answer: `{"items":[{"at":"2026-01-02T03:04:05Z","kind":"Gone","vm":"vm-1","name":"a"}]}`,
			call:   func(c *Client) (any, error) { return c.History(ctx) },
			sent:   seen{Method: "GET", URI: "/v1/history"},
			want:   []Change{{At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Kind: ChangeGone, VM: "vm-1", Name: "a"}},
		},
		"GetQuota": {
			answer: `{"vms":3}`,
			call:   func(c *Client) (any, error) { return c.GetQuota(ctx) },
			sent:   seen{Method: "GET", URI: "/v1/quota"},
			want:   &Quota{VMs: 3},
		},
		"SetQuotaSendsZero": {
			answer: `{"vms":0}`,
			call:   func(c *Client) (any, error) { return c.SetQuota(ctx, Quota{}) },
			sent:   seen{Method: "PUT", URI: "/v1/quota", Body: `{"vms":0}`},
			want:   &Quota{},
		},
		"GetSettingsReadsDurations": {
			answer: `{"bootTime":"1m30s","createTime":"0s","shutdownTime":"2s","rateLimit":5}`,
			call:   func(c *Client) (any, error) { return c.GetSettings(ctx) },
			sent:   seen{Method: "GET", URI: "/v1/settings"},
			want:   &Settings{BootTime: Duration(90 * time.Second), ShutdownTime: Duration(2 * time.Second), RateLimit: 5},
		},
		"SetSettingsWritesDurations": {
			answer: `{"bootTime":"1s"}`,
			call:   func(c *Client) (any, error) { return c.SetSettings(ctx, Settings{BootTime: Duration(time.Second)}) },
			sent:   seen{Method: "PUT", URI: "/v1/settings", Body: `{"createTime":"0s","bootTime":"1s","shutdownTime":"0s","rateLimit":0}`},
			want:   &Settings{BootTime: Duration(time.Second)},
		},
		"CreateFault": {
			answer: `{"id":"f-1","kind":"Vanish","match":{"name":"a*"}}`,
			call: func(c *Client) (any, error) {
				return c.CreateFault(ctx, Fault{Kind: FaultVanish, Match: FaultMatch{Name: "a*"}})
			},
			sent: seen{Method: "POST", URI: "/v1/faults", Body: `{"kind":"Vanish","match":{"name":"a*"}}`},
			want: &Fault{ID: "f-1", Kind: FaultVanish, Match: FaultMatch{Name: "a*"}},
		},
		"ListFaults": {
			answer: `{"items":[]}`,
			call:   func(c *Client) (any, error) { return c.ListFaults(ctx) },
			sent:   seen{Method: "GET", URI: "/v1/faults"},
			want:   []Fault{},
		},
		"DeleteFault": {
			call: func(c *Client) (any, error) { return nil, c.DeleteFault(ctx, "f-1") },
			sent: seen{Method: "DELETE", URI: "/v1/faults/f-1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, sent := serve(t, http.StatusOK, nil, tc.answer)
			got, err := tc.call(c)
			if err != nil {
				t.Fatal(err)
			}
			tc.sent.Auth = "Bearer secret"
			if d := cmp.Diff(tc.sent, *sent); d != "" {
				t.Errorf("request (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("answer (-want +got):\n%s", d)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	cases := map[string]struct {
		status int
		header map[string]string
		body   string
		want   *Error
		text   string
	}{
		"AnAnswerOfTheAPIHasCodeAndMessage": {
			status: 404, body: `{"code":"NotFound","message":"VM vm-1 does not exist"}`,
			want: &Error{Code: CodeNotFound, Message: "VM vm-1 does not exist", StatusCode: 404},
			text: "local cloud: NotFound: VM vm-1 does not exist",
		},
		"ThrottledSaysWhenToTryAgain": {
			status: 429, header: map[string]string{"Retry-After": "3"}, body: `{"code":"Throttled","message":"slow down"}`,
			want: &Error{Code: CodeThrottled, Message: "slow down", StatusCode: 429, RetryAfter: 3 * time.Second},
			text: "local cloud: Throttled: slow down",
		},
		"AnAnswerOfSomethingElseKeepsStatusAndText": {
			status: 502, body: "bad gateway\n",
			want: &Error{Message: "bad gateway", StatusCode: 502},
			text: "local cloud: HTTP status 502: bad gateway",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := serve(t, tc.status, tc.header, tc.body)
			_, err := c.GetVM(context.Background(), "vm-1")
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("error %v is no *Error", err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if err.Error() != tc.text {
				t.Errorf("text %q, want %q", err, tc.text)
			}
			if IsNotFound(err) != (tc.want.Code == CodeNotFound) {
				t.Errorf("IsNotFound = %v for %v", IsNotFound(err), err)
			}
		})
	}
}

func TestALostAnswerIsNoAPIError(t *testing.T) {
	calls := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		calls++
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()
	c, err := NewClient(srv.URL, "t")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CreateVM(context.Background(), CreateVMRequest{Name: "a"})
	var api *Error
	if err == nil || errors.As(err, &api) {
		t.Fatalf("error %v, want one that is no *Error", err)
	}
	if calls != 1 {
		t.Errorf("%d calls, want 1: a creation must not be repeated", calls)
	}
}

func TestNewClientRefusesBadInput(t *testing.T) {
	cases := map[string]struct{ endpoint, token, want string }{
		"NoScheme": {"127.0.0.1:80", "t", `endpoint: invalid value "127.0.0.1:80": must be a URL like http://127.0.0.1:8088`},
		"NoHost":   {"http://", "t", `endpoint: invalid value "http://": must be a URL like http://127.0.0.1:8088`},
		"NoToken":  {"http://127.0.0.1:80", " \n", "token: must not be empty"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := NewClient(tc.endpoint, tc.token)
			if err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestDurationRefusesWhatIsNoDuration(t *testing.T) {
	for _, in := range []string{`5`, `"5"`, `"soon"`} {
		var d Duration
		if err := json.Unmarshal([]byte(in), &d); err == nil {
			t.Errorf("%s was read as %s", in, d)
		}
	}
}
