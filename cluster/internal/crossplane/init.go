package crossplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/drover-dev/drover/cluster/internal/process"
)

const (
	// initTimeout is only for an initialization that hangs: a computer may be busy.
	initTimeout = 10 * time.Minute
	initPeriod  = 300 * time.Millisecond
)

// Init runs "crossplane core init", as the chart's init container does. It is repeated until it
// succeeds: at first its ClusterRole is not aggregated yet, and then its CRDs are not established
// yet.
func (x Installation) Init(ctx context.Context, log string) error {
	ctx, cancel := context.WithTimeout(ctx, initTimeout)
	defer cancel()
	for {
		err := x.initOnce(ctx, log)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(initPeriod):
		case <-ctx.Done():
			return fmt.Errorf("crossplane core init: %w", err)
		}
	}
}

func (x Installation) initOnce(ctx context.Context, log string) error {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, x.Binary, "core", "init", "--activation=*")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(process.Environment(), x.environment()...)
	cmd.Env = append(cmd.Env,
		"CRDS_PATH="+filepath.Join(x.Manifests, "crds"),
		"WEBHOOK_CONFIGS_PATH="+filepath.Join(x.Manifests, "webhookconfigurations"),
		"WEBHOOK_SERVICE_NAME="+webhookService,
		"WEBHOOK_SERVICE_NAMESPACE="+Namespace,
		fmt.Sprintf("WEBHOOK_SERVICE_PORT=%d", x.WebhookPort),
		"TLS_CA_SECRET_NAME="+RootCASecret,
	)
	return cmd.Run()
}
