// Command kubectl-drover is the plugin of kubectl for operators of Drover: kubectl drover.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // Authentication as in kubectl.
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/drover-dev/drover/internal/kubectl/command"
)

func main() {
	// Without a logger, controller-runtime prints a stack trace after 30 seconds.
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command.Run(ctx, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, os.Args[1:])
	stop()
	os.Exit(code)
}
