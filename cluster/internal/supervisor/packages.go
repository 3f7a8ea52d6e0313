package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"

	"github.com/drover-dev/drover/cluster/internal/crossplane"
	"github.com/drover-dev/drover/cluster/internal/process"
	"github.com/drover-dev/drover/cluster/internal/runtime"
)

const (
	packages = "packages"
	// packagesTimeout is how long a start waits for the packages that were installed before. If one
	// does not become healthy, the start does not fail, because the user needs the cluster to
	// repair the package.
	packagesTimeout = 30 * time.Second
	packagesPeriod  = 100 * time.Millisecond
)

// bootPackages starts the package runtime, and waits for the packages that are installed already.
func (s *supervisor) bootPackages(ctx, life context.Context, x crossplane.Installation) (string, error) {
	config, err := s.control.Config()
	if err != nil {
		return "", err
	}
	out := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil))
	crlog.SetLogger(out)
	mgr, err := runtime.Setup(runtime.Options{
		Config: config, Dir: s.Dir, Server: x.Server, CA: x.CA,
		Group: s.group, OnChange: s.changed, Log: out,
	})
	if err != nil {
		return "", err
	}
	go func() {
		// Without the manager, no package would be run or watched any more.
		if err := mgr.Start(life); err != nil {
			s.log.Println("package runtime:", err)
			s.stop()
		}
	}()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return "", errors.New("the package runtime cannot watch package revisions")
	}
	return s.awaitPackages(ctx, x.Client)
}

func (s *supervisor) awaitPackages(ctx context.Context, c client.Client) (string, error) {
	for deadline := time.Now().Add(packagesTimeout); ; {
		n, away, err := s.packagesAway(ctx, c)
		if err != nil {
			return "", err
		}
		switch {
		case n == 0:
			return "package runtime is ready; nothing is installed yet", nil
		case len(away) == 0:
			return fmt.Sprintf("%d packages are running", n), nil
		case time.Now().After(deadline):
			return "not running: " + strings.Join(away, "; "), nil
		}
		select {
		case <-time.After(packagesPeriod):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// packagesAway counts the active revisions that have a process, and returns why some of the
// processes do not run. It also checks the process itself, because a condition may be stale since
// before a restart.
func (s *supervisor) packagesAway(ctx context.Context, c client.Client) (n int, away []string, err error) {
	running := map[string]bool{}
	for _, p := range s.group.Status() {
		running[p.Name] = p.State == process.Running
	}
	functions, providers := &pkgv1.FunctionRevisionList{}, &pkgv1.ProviderRevisionList{}
	for _, l := range []pkgv1.PackageRevisionList{functions, providers} {
		if err := c.List(ctx, l); err != nil {
			return 0, nil, err
		}
		for _, r := range l.GetRevisions() {
			if r.GetDesiredState() != pkgv1.PackageRevisionActive {
				continue
			}
			n++
			component, err := runtime.Component(r)
			health := r.GetCondition(pkgv1.TypeRuntimeHealthy)
			if err != nil || health.Status != "True" || !running[component] {
				away = append(away, r.GetName()+": "+health.Message)
			}
		}
	}
	return n, away, nil
}
