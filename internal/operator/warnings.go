package operator

import (
	"context"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"k8s.io/client-go/rest"
)

// warnings logs the warnings of the API server, without the one about the name of crossplane-runtime's finalizer. The API
// server sends it for each write of the finalizers of a managed resource, and the name cannot change.
type warnings struct {
	next rest.WarningHandlerWithContext
}

// HandleWarningHeaderWithContext handles a warning of the API server.
func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, text string) {
	if !strings.Contains(text, managed.FinalizerName) {
		w.next.HandleWarningHeaderWithContext(ctx, code, agent, text)
	}
}
