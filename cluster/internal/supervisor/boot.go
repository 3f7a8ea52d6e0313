package supervisor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/cluster/internal/apply"
	"github.com/drover-dev/drover/cluster/internal/crossplane"
	"github.com/drover-dev/drover/cluster/internal/files"
	"github.com/drover-dev/drover/cluster/internal/kube"
	"github.com/drover-dev/drover/cluster/internal/probe"
	"github.com/drover-dev/drover/cluster/internal/process"
	"github.com/drover-dev/drover/cluster/internal/registry"
)

const (
	// startTimeout is how long one component may take to become ready. A computer that is busy is no fault, and one that
	// keeps ending is reported at once: the limit is only for a component that hangs.
	startTimeout = 10 * time.Minute
	// waitsPeriod is the time between two reports of the causes of a wait.
	waitsPeriod = 15 * time.Second
)

func (s *supervisor) binary(name string) string { return filepath.Join(s.Bin, name) }

// prepare finds the binaries and chooses the ports.
func (s *supervisor) prepare() error {
	for _, name := range []string{"drover-kube", "crossplane", "crossplane-manifests"} {
		if !files.Exists(s.binary(name)) {
			return &stepError{step: "binaries", err: fmt.Errorf("%s is missing: build it, or name its folder with --bin", s.binary(name))}
		}
	}
	if s.TargetKube != "" && !s.Target {
		return &stepError{step: "binaries", err: errors.New("--target-kube must be together with --target: there is no other target cluster")}
	}
	if s.TargetKube == "" {
		s.TargetKube = s.binary("drover-kube")
	}
	if s.Target && !files.Exists(s.TargetKube) {
		return &stepError{step: "binaries", err: fmt.Errorf("%s is missing: build it, or name another one with --target-kube", s.TargetKube)}
	}
	s.hasLocalCloud = files.Exists(s.binary("local-cloud"))
	if err := s.choosePorts(); err != nil {
		return &stepError{step: "ports", err: err}
	}
	s.control = kube.ControlPlane{Name: Kubernetes, Dir: s.Dir.Kubernetes(), Port: s.ports[Kubernetes], Kubeconfig: s.Dir.Kubeconfig(), Audit: s.Audit}
	s.target = kube.ControlPlane{Name: Target, Dir: s.Dir.Target(), Port: s.ports[Target], Kubeconfig: s.Dir.TargetKubeconfig(), Audit: s.Audit}
	close(s.prepared)
	return nil
}

// boot starts all components. Components that do not depend on each other start at the same time.
func (s *supervisor) boot(ctx context.Context) error {
	if err := s.prepare(); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.step(gctx, Registry, s.bootRegistry) })
	g.Go(func() error { return s.bootControl(gctx, ctx) })
	if s.Target {
		g.Go(func() error {
			return s.step(gctx, Target, func(ctx context.Context) (string, error) {
				_, err := s.bootKubernetes(ctx, s.target, s.TargetKube)
				return "API server is ready on " + s.target.Server(), err
			})
		})
	}
	if s.hasLocalCloud {
		g.Go(func() error { return s.step(gctx, LocalCloud, s.bootLocalCloud) })
	} else {
		s.progress.add(Event{Step: LocalCloud, Message: "left out: there is no " + s.binary("local-cloud")})
	}
	return g.Wait()
}

// step runs one step of the start, and adds its result to the progress.
func (s *supervisor) step(ctx context.Context, name string, run func(context.Context) (string, error)) error {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.reportWaits(name, done)
	}()
	message, err := run(ctx)
	close(done)
	// No report may follow the end of the start, which the last event shows.
	<-ended
	if err != nil {
		return &stepError{step: name, err: err, log: s.Dir.Log(name)}
	}
	s.progress.add(Event{Step: name, Message: message})
	return nil
}

// reportWaits adds to the progress the cause of a wait, until it is done.
func (s *supervisor) reportWaits(step string, done <-chan struct{}) {
	tick := time.NewTicker(waitsPeriod)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.progress.add(Event{Step: step, Message: "not ready yet: " + pending(step, s.group.Status())})
		case <-done:
			return
		}
	}
}

// pending returns what a step waits for, from the processes that exist.
func pending(step string, processes []process.Status) string {
	for _, p := range processes {
		if p.Name == step {
			return cmp.Or(p.Message, string(p.State))
		}
	}
	return "its process is not started yet"
}

// bootControl starts the control cluster and its components. ctx ends with the start, and life with
// the instance.
func (s *supervisor) bootControl(ctx, life context.Context) error {
	var x crossplane.Installation
	if err := s.step(ctx, Kubernetes, func(ctx context.Context) (string, error) {
		c, err := s.bootKubernetes(ctx, s.control, s.binary("drover-kube"))
		if err != nil {
			return "", err
		}
		ca, err := s.control.CA()
		x = crossplane.Installation{Options: s.crossplaneOptions(), Dir: s.Dir, Server: s.control.Server(), CA: ca, Client: c}
		return "API server is ready on " + s.control.Server(), err
	}); err != nil {
		return err
	}
	if err := s.step(ctx, Crossplane, func(ctx context.Context) (string, error) {
		return "Crossplane " + crossplane.Version + " is ready", s.bootCrossplane(ctx, life, x)
	}); err != nil {
		return err
	}
	if err := s.step(ctx, RBAC, func(ctx context.Context) (string, error) {
		return "RBAC manager is started", s.launch(ctx, x.RBAC(RBAC, s.Dir.Log(RBAC)))
	}); err != nil {
		return err
	}
	return s.step(ctx, packages, func(ctx context.Context) (string, error) { return s.bootPackages(ctx, life, x) })
}

func (s *supervisor) bootKubernetes(ctx context.Context, k kube.ControlPlane, binary string) (client.Client, error) {
	if err := k.Prepare(time.Now()); err != nil {
		return nil, err
	}
	spec, err := k.Spec(binary, s.Dir.Log(k.Name))
	if err != nil {
		return nil, err
	}
	if err := s.launch(ctx, spec); err != nil {
		return nil, err
	}
	config, err := k.Config()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: apply.Scheme()})
	if err != nil {
		return nil, err
	}
	return c, k.Complete(ctx, c)
}

func (s *supervisor) bootCrossplane(ctx, life context.Context, x crossplane.Installation) error {
	if err := x.Install(ctx); err != nil {
		return err
	}
	if err := x.Identities(life, func(err error) { s.log.Println("tokens of Crossplane:", err) }); err != nil {
		return err
	}
	if err := x.Init(ctx, s.Dir.Log(Crossplane)); err != nil {
		return err
	}
	if err := x.ExtractTLS(ctx); err != nil {
		return err
	}
	if err := x.RewriteImages(ctx, s.registryAddress()); err != nil {
		return err
	}
	return s.launch(ctx, x.Core(Crossplane, s.Dir.Log(Crossplane)))
}

func (s *supervisor) bootRegistry(context.Context) (string, error) {
	out, err := os.OpenFile(s.Dir.Log(Registry), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	logger := log.New(out, "", log.LstdFlags)
	handler, err := registry.Handler(s.Dir.Registry(), logger)
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", s.registryAddress())
	if err != nil {
		return "", err
	}
	// It ends with the process. No client waits for a response by then.
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { logger.Println(server.Serve(l)) }()
	return "package registry is ready on " + s.registryAddress(), nil
}

func (s *supervisor) bootLocalCloud(ctx context.Context) (string, error) {
	if !files.Exists(s.Dir.LocalCloudToken()) {
		if err := files.Write(s.Dir.LocalCloudToken(), []byte(rand.Text())); err != nil {
			return "", err
		}
	}
	address := fmt.Sprintf("127.0.0.1:%d", s.ports[LocalCloud])
	args := []string{"--dir", s.Dir.LocalCloud(), "--listen", address, "--token-file", s.Dir.LocalCloudToken()}
	if s.RealVMs != "" {
		args = append(args, "--real-vms", s.RealVMs)
	}
	return "local cloud is ready on http://" + address, s.launch(ctx, process.Spec{
		Name:  LocalCloud,
		Path:  s.binary("local-cloud"),
		Args:  args,
		Log:   s.Dir.Log(LocalCloud),
		Ready: func(ctx context.Context) error { return probe.TCP(ctx, address) },
	})
}
