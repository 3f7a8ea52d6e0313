// Command function-drover serves the steps of Drover's Compositions to Crossplane.
package main

import (
	"context"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	function "github.com/crossplane/function-sdk-go"

	drover "github.com/drover-dev/drover/internal/function"
)

type cli struct {
	Address            string `default:":9443" env:"ADDRESS" help:"Address to serve gRPC at."`
	TLSCertsDir        string `env:"TLS_SERVER_CERTS_DIR" help:"Folder with tls.crt, tls.key and the ca.crt that clients are checked against." name:"tls-certs-dir"`
	Insecure           bool   `env:"INSECURE" help:"Serve without TLS. For development."`
	Debug              bool   `env:"DEBUG" help:"Log debug messages." short:"d"`
	MetricsAddress     string `default:":8080" env:"METRICS_ADDRESS" help:"Address to serve Prometheus metrics at. Empty serves none."`
	MaxRecvMessageSize int    `default:"64" env:"MAX_RECV_MESSAGE_SIZE" help:"Largest request that is accepted, in MiB."`
}

// Run serves until it receives SIGINT or SIGTERM, and completes the calls that are running.
func (c *cli) Run() error {
	log, err := function.NewLogger(c.Debug)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return c.serve(ctx, drover.New(log, time.Now))
}

func main() {
	ctx := kong.Parse(&cli{}, kong.Name("function-drover"), kong.Description("Serves the steps of Drover's Compositions to Crossplane."))
	ctx.FatalIfErrorf(ctx.Run())
}
