package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/proto/v1beta1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// callTimeout bounds one call of a function, and the wait for its connection.
	callTimeout = 20 * time.Second
	// pruneInterval is how often connections to Functions that are gone are closed.
	pruneInterval = 10 * time.Minute

	labelPackage = "pkg.crossplane.io/package"
)

var functionRevisions = schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "FunctionRevisionList"}

// Functions calls the installed Functions by gRPC. It is safe for concurrent use. If it is
// started, it closes the connections to Functions that are gone.
type Functions struct {
	// Revisions reads FunctionRevisions, at each call: from a cache, if possible.
	Revisions client.Reader
	// CertsDir has the client's tls.crt and tls.key, and the Functions' ca.crt. Crossplane
	// mounts it into providers as TLS_CLIENT_CERTS_DIR. It is read at each handshake.
	CertsDir string
	// Timeout of one call, by default 20 s.
	Timeout time.Duration

	// mu guards connections, by the name of the Function.
	mu          sync.Mutex
	connections map[string]*grpc.ClientConn
}

// RunFunction calls the active revision of a Function.
func (f *Functions) RunFunction(ctx context.Context, name string, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout())
	defer cancel()
	endpoint, err := f.endpointOf(ctx, name)
	if err != nil {
		return nil, err
	}
	conn, err := f.connect(name, endpoint)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the Function %q at %q: %w", name, endpoint, err)
	}
	rsp, err := call(ctx, conn, req)
	if err != nil {
		return nil, fmt.Errorf("cannot call the Function %q at %q: %w", name, endpoint, err)
	}
	return rsp, nil
}

// call a function. One that was built before v1 has v1beta1, whose messages are the same
// on the wire.
func call(ctx context.Context, conn *grpc.ClientConn, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(ctx, req)
	if status.Code(err) != codes.Unimplemented {
		return rsp, err
	}
	rsp = &fnv1.RunFunctionResponse{}
	return rsp, conn.Invoke(ctx, v1beta1.FunctionRunnerService_RunFunction_FullMethodName, req, rsp)
}

// endpointOf returns the gRPC target of a Function's active revision.
func (f *Functions) endpointOf(ctx context.Context, name string) (string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(functionRevisions)
	if err := f.Revisions.List(ctx, list, client.MatchingLabels{labelPackage: name}, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("cannot list the FunctionRevisions of Function %q: %w", name, err)
	}
	if len(list.Items) == 0 {
		f.forget(name)
		return "", fmt.Errorf("the Function %q is not installed, or its package cannot be pulled: there is no FunctionRevision with label %s=%s; kubectl describe function.pkg.crossplane.io %s has the cause", name, labelPackage, name, name)
	}
	active := slices.DeleteFunc(slices.Clone(list.Items), func(u unstructured.Unstructured) bool { return !isActive(u) })
	if len(active) == 0 {
		return "", fmt.Errorf("the Function %q has no active FunctionRevision (one with spec.desiredState: Active)", name)
	}
	newest := slices.MaxFunc(active, func(a, b unstructured.Unstructured) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	endpoint, _, _ := unstructured.NestedString(newest.Object, "status", "endpoint")
	if endpoint == "" {
		return "", fmt.Errorf("the Function %q has no endpoint yet: status.endpoint of its active FunctionRevision %q is empty; kubectl describe functionrevision.pkg.crossplane.io %s has the cause", name, newest.GetName(), newest.GetName())
	}
	return endpoint, nil
}

func isActive(revision unstructured.Unstructured) bool {
	state, _, _ := unstructured.NestedString(revision.Object, "spec", "desiredState")
	return state == "Active"
}

func revisionOf(revision unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(revision.Object, "spec", "revision")
	return n
}

func (f *Functions) timeout() time.Duration {
	return cmp.Or(f.Timeout, callTimeout)
}
