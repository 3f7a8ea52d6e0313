package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

const apiserverStartTimeout = 10 * time.Minute

func serve(args []string) error {
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	dir := fs.String("dir", "", "directory of the control plane's certificates and data")
	port := fs.Int("port", 0, "port of the API server on 127.0.0.1")
	audit := fs.String("audit", "", "write an audit log of all writes to DIR/audit.log, at this level: Metadata, Request or RequestResponse; empty writes none")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("--dir: required")
	}
	if *port < 1 || *port > 65535 {
		return fmt.Errorf("--port: got %d, want 1 to 65535", *port)
	}
	abs, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	return run(layout{dir: abs}, *port, *audit)
}

// run returns only if something failed: on SIGTERM it ends the process.
func run(l layout, port int, audit string) error {
	// The components configure logging one after the other in the same process.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged

	apiArgs := apiserverArgs(l, port)
	if audit != "" {
		if err := writeAuditPolicy(l, audit); err != nil {
			return err
		}
		apiArgs = append(apiArgs, auditArgs(l)...)
	}
	e, err := startEtcd(l)
	if err != nil {
		return err
	}
	failed := make(chan error, 4)
	start := func(name string, run func() error) {
		go func() {
			err := run()
			if err == nil {
				err = errors.New("ended")
			}
			failed <- fmt.Errorf("%s: %w", name, err)
		}()
	}

	// This command has the signal handler, of which a process may have only one.
	api := apiserver.NewAPIServerCommand()
	stopped := api.Context()
	start("kube-apiserver", execute(api, apiArgs))
	start("etcd", func() error { return <-e.Err() })
	go func() {
		if err := waitReady(stopped, l); err != nil {
			failed <- fmt.Errorf("kube-apiserver: %w", err)
			return
		}
		start("kube-controller-manager", execute(controllermanager.NewControllerManagerCommand(), controllerManagerArgs(l)))
		start("kube-scheduler", func() error { return runScheduler(stopped, schedulerArgs(l)) })
	}()

	select {
	case err := <-failed:
		if stopped.Err() == nil {
			return err
		}
	case <-stopped.Done():
	}
	// A graceful stop waits for watches to end, which takes 40 s and has no benefit here.
	e.Server.HardStop()
	os.Exit(0)
	return nil
}

func execute(cmd *cobra.Command, args []string) func() error {
	cmd.SetArgs(args)
	return cmd.Execute
}

// runScheduler runs kube-scheduler's command without its signal handler.
func runScheduler(ctx context.Context, args []string) error {
	opts := scheduleroptions.NewOptions()
	fs := pflag.NewFlagSet("kube-scheduler", pflag.ContinueOnError)
	for _, f := range opts.Flags.FlagSets {
		fs.AddFlagSet(f)
	}
	if err := fs.Parse(args); err != nil {
		return err
	}
	config, s, err := scheduler.Setup(ctx, opts)
	if err != nil {
		return err
	}
	return scheduler.Run(ctx, config, s)
}

// waitReady waits until the API server serves and has its bootstrap roles.
func waitReady(ctx context.Context, l layout) error {
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig())
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, apiserverStartTimeout, true, func(ctx context.Context) (bool, error) {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("not ready after %s", apiserverStartTimeout)
	}
	return err
}
