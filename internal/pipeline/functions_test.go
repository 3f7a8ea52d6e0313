package pipeline

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/proto/v1beta1"
	"github.com/drover-dev/drover/test/patience"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// server of a function that answers with its own name.
type server struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	name string
	// block lets a call wait until its context or the channel is done.
	block chan struct{}

	mu       sync.Mutex
	requests []*fnv1.RunFunctionRequest
}

func (s *server) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	s.mu.Lock()
	s.requests = append(s.requests, req)
	s.mu.Unlock()
	if s.block != nil {
		select {
		case <-s.block:
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	return &fnv1.RunFunctionResponse{
		Meta:       &fnv1.ResponseMeta{Tag: req.GetMeta().GetTag()},
		Conditions: []*fnv1.Condition{condition(s.name)},
	}, nil
}

// oldServer of a function that was built before v1.
type oldServer struct {
	v1beta1.UnimplementedFunctionRunnerServiceServer
}

func (oldServer) RunFunction(_ context.Context, req *v1beta1.RunFunctionRequest) (*v1beta1.RunFunctionResponse, error) {
	return &v1beta1.RunFunctionResponse{Conditions: []*v1beta1.Condition{{Type: req.GetInput().GetFields()["kind"].GetStringValue()}}}, nil
}

const loopback = "127.0.0.1"

// serve a function on loopback until the test is over, and return its endpoint.
func serve(t testing.TB, a authority, register func(*grpc.Server)) (string, *grpc.Server) {
	t.Helper()
	return serveAs(t, a, loopback, register)
}

// serveAs serves a function with a certificate for an address.
func serveAs(t testing.TB, a authority, address string, register func(*grpc.Server)) (string, *grpc.Server) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(a.server(t, address))))
	register(s)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return "dns:///" + listener.Addr().String(), s
}

func serveV1(t testing.TB, a authority, s *server) string {
	t.Helper()
	endpoint, _ := serve(t, a, func(g *grpc.Server) { fnv1.RegisterFunctionRunnerServiceServer(g, s) })
	return endpoint
}

func functionRevision(function, state, endpoint string, number int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"desiredState": state, "revision": number},
		"status": map[string]any{"endpoint": endpoint},
	}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "FunctionRevision"})
	u.SetName(fmt.Sprintf("%s-%d", function, number))
	u.SetLabels(map[string]string{labelPackage: function})
	return u
}

func newFunctions(t testing.TB, dir string, revisions ...*unstructured.Unstructured) (*Functions, client.Client) {
	t.Helper()
	s := runtime.NewScheme()
	gvk := schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "FunctionRevision"}
	s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
	s.AddKnownTypeWithName(functionRevisions, &unstructured.UnstructuredList{})
	b := fake.NewClientBuilder().WithScheme(s)
	for _, r := range revisions {
		b = b.WithObjects(r)
	}
	c := b.Build()
	f := &Functions{Revisions: c, CertsDir: dir, Timeout: patience.Limit()}
	t.Cleanup(f.closeAll)
	return f, c
}

// answerOf returns the name of the server that answers.
func answerOf(t testing.TB, f *Functions) (string, error) {
	t.Helper()
	rsp, err := f.RunFunction(t.Context(), "fn", &fnv1.RunFunctionRequest{})
	if err != nil {
		return "", err
	}
	return rsp.GetConditions()[0].GetType(), nil
}

func TestTheActiveRevisionIsCalled(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	a.writeClient(t, dir)
	old, current, other := serveV1(t, a, &server{name: "old"}), serveV1(t, a, &server{name: "current"}), serveV1(t, a, &server{name: "other"})
	cases := map[string]struct {
		revisions []*unstructured.Unstructured
		want      string
		err       string
	}{
		"NotTheInactiveOne": {
			revisions: []*unstructured.Unstructured{functionRevision("fn", "Inactive", old, 1), functionRevision("fn", "Active", current, 2), functionRevision("other", "Active", other, 3)},
			want:      "current",
		},
		"TheNewestOfTwo": {
			revisions: []*unstructured.Unstructured{functionRevision("fn", "Active", old, 1), functionRevision("fn", "Active", current, 2)},
			want:      "current",
		},
		"AMissingFunctionIsNamed": {
			revisions: []*unstructured.Unstructured{functionRevision("other", "Active", other, 3)},
			err:       `the Function "fn" is not installed, or its package cannot be pulled: there is no FunctionRevision with label pkg.crossplane.io/package=fn; kubectl describe function.pkg.crossplane.io fn has the cause`,
		},
		"AFunctionWithoutActiveRevisionIsNamed": {
			revisions: []*unstructured.Unstructured{functionRevision("fn", "Inactive", old, 1)},
			err:       `the Function "fn" has no active FunctionRevision (one with spec.desiredState: Active)`,
		},
		"ARevisionWithoutEndpointIsNamed": {
			revisions: []*unstructured.Unstructured{functionRevision("fn", "Active", "", 7)},
			err:       `the Function "fn" has no endpoint yet: status.endpoint of its active FunctionRevision "fn-7" is empty; kubectl describe functionrevision.pkg.crossplane.io fn-7 has the cause`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, _ := newFunctions(t, dir, tc.revisions...)
			got, err := answerOf(t, f)
			if got != tc.want || text(err) != tc.err {
				t.Errorf("want %q, %q; got %q, %q", tc.want, tc.err, got, text(err))
			}
		})
	}
}

func TestAFunctionThatWasBuiltBeforeV1IsCalled(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	a.writeClient(t, dir)
	endpoint, _ := serve(t, a, func(g *grpc.Server) { v1beta1.RegisterFunctionRunnerServiceServer(g, oldServer{}) })
	f, _ := newFunctions(t, dir, functionRevision("fn", "Active", endpoint, 1))
	rsp, err := f.RunFunction(t.Context(), "fn", &fnv1.RunFunctionRequest{Input: mustStruct(t, map[string]any{"kind": "Old"})})
	if err != nil {
		t.Fatal(err)
	}
	if got := rsp.GetConditions()[0].GetType(); got != "Old" {
		t.Errorf("condition: want Old, got %s", got)
	}
}

func TestAPipelineCallsAFunctionByGRPC(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	a.writeClient(t, dir)
	s := &server{name: "remote"}
	f, _ := newFunctions(t, dir, functionRevision("fn", "Active", serveV1(t, a, s), 1))
	got, err := New(Options{Functions: f}).Run(t.Context(), stepsNamed("fn"), Input{Observed: observed("u")})
	if err != nil {
		t.Fatal(err)
	}
	if got.Conditions[0].GetType() != "remote" {
		t.Errorf("conditions: got %v", got.Conditions)
	}
	if meta := s.requests[0].GetMeta(); meta.GetTag() == "" || len(meta.GetCapabilities()) != 5 {
		t.Errorf("meta: want a tag and 5 capabilities, got %v", meta)
	}
}

func TestAFunctionThatCannotBeCalledEndsWithTheDeadline(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	a.writeClient(t, dir)
	stopped, s := serve(t, a, func(g *grpc.Server) { fnv1.RegisterFunctionRunnerServiceServer(g, &server{}) })
	s.Stop()
	misnamed, _ := serveAs(t, a, "127.0.0.9", func(g *grpc.Server) { fnv1.RegisterFunctionRunnerServiceServer(g, &server{}) })
	cases := map[string]struct {
		endpoint string
		want     string
	}{
		"TooSlow":             {endpoint: serveV1(t, a, &server{block: make(chan struct{})}), want: "DeadlineExceeded"},
		"NotListening":        {endpoint: stopped, want: "connection refused"},
		"ServerOfAnotherCA":   {endpoint: serveV1(t, newAuthority(t), &server{}), want: "certificate signed by unknown authority"},
		"ServerOfAnotherName": {endpoint: misnamed, want: "certificate is valid for 127.0.0.9, not 127.0.0.1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := newFunctions(t, dir, functionRevision("fn", "Active", tc.endpoint, 1))
			f.Timeout = patience.Scale(500 * time.Millisecond)
			start := time.Now()
			_, err := answerOf(t, f)
			if status.Code(err) != codes.DeadlineExceeded || !strings.Contains(text(err), tc.want) || !strings.Contains(text(err), `the Function "fn"`) {
				t.Errorf("error: want %q, got %q", tc.want, text(err))
			}
			if took := time.Since(start); took < f.Timeout {
				t.Errorf("took %s, with a timeout of %s", took, f.Timeout)
			}
		})
	}
}

func TestAFunctionThatStartsLateIsWaitedFor(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	a.writeClient(t, dir)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	f, _ := newFunctions(t, dir, functionRevision("fn", "Active", "dns:///"+address, 1))
	go func() {
		time.Sleep(200 * time.Millisecond)
		if listener, err = net.Listen("tcp", address); err != nil {
			return
		}
		s := grpc.NewServer(grpc.Creds(credentials.NewTLS(a.server(t, loopback))))
		fnv1.RegisterFunctionRunnerServiceServer(s, &server{name: "late"})
		_ = s.Serve(listener)
	}()
	if got, err := answerOf(t, f); got != "late" {
		t.Errorf("want late, got %q, %v", got, err)
	}
}

func TestAnotherEndpointReplacesTheConnection(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	a.writeClient(t, dir)
	slow := &server{name: "first", block: make(chan struct{})}
	first, second := serveV1(t, a, slow), serveV1(t, a, &server{name: "second"})
	revision := functionRevision("fn", "Active", first, 1)
	f, c := newFunctions(t, dir, revision)
	// The old connection is closed after that time.
	f.Timeout = patience.Scale(2 * time.Second)

	inFlight := make(chan string)
	go func() {
		got, _ := answerOf(t, f)
		inFlight <- got
	}()
	for len(connectionsOf(f)) == 0 {
		time.Sleep(time.Millisecond)
	}
	old := connectionsOf(f)["fn"]
	if err := unstructured.SetNestedField(revision.Object, second, "status", "endpoint"); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	if got, err := answerOf(t, f); got != "second" {
		t.Errorf("after the change: want second, got %q, %v", got, err)
	}
	close(slow.block)
	if got := <-inFlight; got != "first" {
		t.Errorf("the call in flight: want first, got %q", got)
	}
	waitForState(t, old, connectivity.Shutdown)
	if n := len(connectionsOf(f)); n != 1 {
		t.Errorf("want 1 connection, got %d", n)
	}
}

func connectionsOf(f *Functions) map[string]*grpc.ClientConn {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]*grpc.ClientConn{}
	for name, conn := range f.connections {
		all[name] = conn
	}
	return all
}

func waitForState(t testing.TB, conn *grpc.ClientConn, want connectivity.State) {
	t.Helper()
	patience.Eventually(t, func(context.Context) string {
		if got := conn.GetState(); got != want {
			return fmt.Sprintf("connection is %s, not %s", got, want)
		}
		return ""
	})
}

func TestTheConnectionToAFunctionThatIsGoneIsClosed(t *testing.T) {
	cases := map[string]func(t *testing.T, f *Functions) error{
		"ByTheNextCall": func(t *testing.T, f *Functions) error {
			if _, err := answerOf(t, f); err == nil {
				t.Error("want an error: the Function is gone")
			}
			return nil
		},
		"ByPruning": func(t *testing.T, f *Functions) error { return f.Prune(t.Context()) },
	}
	for name, notice := range cases {
		t.Run(name, func(t *testing.T) {
			a, dir := newAuthority(t), t.TempDir()
			a.writeClient(t, dir)
			revision := functionRevision("fn", "Active", serveV1(t, a, &server{name: "fn"}), 1)
			f, c := newFunctions(t, dir, revision)
			f.Timeout = patience.Scale(2 * time.Second)
			if _, err := answerOf(t, f); err != nil {
				t.Fatal(err)
			}
			if err := f.Prune(t.Context()); err != nil {
				t.Fatal(err)
			}
			conn := connectionsOf(f)["fn"]
			if conn == nil {
				t.Fatal("the connection to an installed Function was closed")
			}
			if err := c.Delete(t.Context(), revision); err != nil {
				t.Fatal(err)
			}
			if err := notice(t, f); err != nil {
				t.Fatal(err)
			}
			waitForState(t, conn, connectivity.Shutdown)
			if n := len(connectionsOf(f)); n != 0 {
				t.Errorf("want no connection, got %d", n)
			}
		})
	}
}

func TestAllConnectionsAreClosedInTheEnd(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	a.writeClient(t, dir)
	f, _ := newFunctions(t, dir, functionRevision("fn", "Active", serveV1(t, a, &server{name: "fn"}), 1))
	if _, err := answerOf(t, f); err != nil {
		t.Fatal(err)
	}
	conn := connectionsOf(f)["fn"]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Start(ctx); err != nil {
		t.Fatal(err)
	}
	waitForState(t, conn, connectivity.Shutdown)
}

func TestCertificatesAreReadAgainAtEachHandshake(t *testing.T) {
	old, dir := newAuthority(t), t.TempDir()
	old.writeClient(t, dir)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	start := func(a authority, name string, l net.Listener) *grpc.Server {
		s := grpc.NewServer(grpc.Creds(credentials.NewTLS(a.server(t, loopback))))
		fnv1.RegisterFunctionRunnerServiceServer(s, &server{name: name})
		go func() { _ = s.Serve(l) }()
		t.Cleanup(s.Stop)
		return s
	}
	first := start(old, "before", listener)
	f, _ := newFunctions(t, dir, functionRevision("fn", "Active", "dns:///"+address, 1))
	if got, err := answerOf(t, f); got != "before" {
		t.Fatalf("want before, got %q, %v", got, err)
	}

	conn := connectionsOf(f)["fn"]
	first.Stop()
	for conn.GetState() == connectivity.Ready {
		time.Sleep(time.Millisecond)
	}
	rotated := newAuthority(t)
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	start(rotated, "after", listener)
	rotated.writeClient(t, dir)
	if got, err := answerOf(t, f); got != "after" {
		t.Errorf("want after, got %q, %v", got, err)
	}
}

func TestMissingCertificatesAreExplained(t *testing.T) {
	cases := map[string]struct {
		dir  func(*testing.T) string
		want string
	}{
		"NoDirectory": {
			dir:  func(*testing.T) string { return "" },
			want: "there is no client certificate: set TLS_CLIENT_CERTS_DIR to a directory with tls.crt, tls.key and ca.crt (Crossplane does so for the Deployment of a provider)",
		},
		"AnEmptyDirectory": {
			dir:  func(t *testing.T) string { return t.TempDir() },
			want: "(TLS_CLIENT_CERTS_DIR) lacks tls.crt, tls.key, ca.crt; mount the Secret that Crossplane made for the provider (spec.tlsClientSecretName of its ProviderRevision)",
		},
		"ADirectoryWithoutCA": {
			dir:  func(t *testing.T) string { return without(t, fileCA) },
			want: "lacks ca.crt; ",
		},
		"ACertificateThatIsNone": {
			dir:  func(t *testing.T) string { return broken(t, fileCert) },
			want: "cannot load the client certificate from ",
		},
		"ACAThatIsNone": {
			dir:  func(t *testing.T) string { return broken(t, fileCA) },
			want: "ca.crt has no valid CA certificate",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, _ := newFunctions(t, tc.dir(t), functionRevision("fn", "Active", "dns:///127.0.0.1:1", 1))
			start := time.Now()
			_, err := answerOf(t, f)
			if !strings.Contains(text(err), tc.want) || !strings.Contains(text(err), `the Function "fn"`) {
				t.Errorf("error: want %q, got %q", tc.want, text(err))
			}
			if time.Since(start) > patience.Scale(f.Timeout/2) {
				t.Error("the error comes not at once")
			}
		})
	}
}

func without(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	newAuthority(t).writeClient(t, dir)
	if err := os.Remove(filepath.Join(dir, file)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func broken(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	newAuthority(t).writeClient(t, dir)
	if err := os.WriteFile(filepath.Join(dir, file), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestConcurrentCallsShareAConnection(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	a.writeClient(t, dir)
	f, _ := newFunctions(t, dir, functionRevision("fn", "Active", serveV1(t, a, &server{name: "fn"}), 1))
	var wg sync.WaitGroup
	answers := make([]string, 20)
	for i := range answers {
		wg.Go(func() { answers[i], _ = answerOf(t, f) })
	}
	wg.Wait()
	if diff := cmp.Diff(slices.Repeat([]string{"fn"}, 20), answers); diff != "" {
		t.Errorf("answers: -want, +got:\n%s", diff)
	}
	if n := len(connectionsOf(f)); n != 1 {
		t.Errorf("want 1 connection, got %d", n)
	}
}
