package install

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"

	"github.com/drover-dev/drover/cluster/internal/apply"
)

// TestAnInstallationReportsTheCauseOfItsWait: a computer may be so slow that a user asks whether anything happens.
func TestAnInstallationReportsTheCauseOfItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(apply.Scheme()).Build(), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, ok := o.(*v1beta1.Lock); !ok {
					return c.Get(ctx, key, o, opts...)
				}
				if time.Since(began) < waitsPeriod+time.Second {
					return errors.New("connection refused")
				}
				return nil
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*waitsPeriod+time.Second)
		defer cancel()
		var lines []string
		err := Run(ctx, c, Package{Kind: "provider", Reference: "example.org/drover/provider-a:v1.0.0"}, func(line string) { lines = append(lines, line) })
		want := []string{
			"Provider drover-provider-a: example.org/drover/provider-a:v1.0.0",
			"waits for the API server: connection refused",
			"waits for example.org/drover/provider-a: not unpacked yet: no condition Healthy or Installed yet",
		}
		if !slices.Equal(lines, want) {
			t.Errorf("got %q, want %q", lines, want)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "provider-a: not unpacked yet") {
			t.Errorf("error %v, want the deadline and the cause", err)
		}
	})
}
