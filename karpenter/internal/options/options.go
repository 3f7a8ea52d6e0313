// Package options has the flags of drover-karpenter beside those of Karpenter.
package options

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/utils/env"
)

// InCluster is the value of --control-kubeconfig for the cluster that drover-karpenter runs in.
const InCluster = "in-cluster"

// Options of drover-karpenter.
type Options struct {
	// ControlKubeconfig is a file with the access to the control cluster, InCluster, or empty if the control cluster is the
	// target cluster.
	ControlKubeconfig string
	// MachineNamespace is the namespace of the Machines and their classes in the control cluster.
	MachineNamespace string
	// VMTimeout is how long a Machine may take until its VM has a providerID.
	VMTimeout time.Duration
}

var _ options.Injectable = &Options{}

type key struct{}

// AddFlags adds the flags. Each has an environment variable, as those of Karpenter.
func (o *Options) AddFlags(fs *options.FlagSet) {
	fs.StringVar(&o.ControlKubeconfig, "control-kubeconfig", env.WithDefaultString("CONTROL_KUBECONFIG", ""),
		"Kubeconfig of the control cluster, where Drover runs; "+InCluster+" for the cluster that this process runs in. Empty if it is the target cluster.")
	fs.StringVar(&o.MachineNamespace, "machine-namespace", env.WithDefaultString("MACHINE_NAMESPACE", ""),
		"Namespace of the Machines and MachineClasses in the control cluster.")
	fs.DurationVar(&o.VMTimeout, "vm-timeout", env.WithDefaultDuration("VM_TIMEOUT", 20*time.Minute),
		"How long a Machine may take until its VM has a providerID. After that, its NodeClaim is deleted.")
}

// Parse the flags. The caller validates them: Karpenter answers an error with a panic.
func (o *Options) Parse(fs *options.FlagSet, args ...string) error {
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(0)
		}
		return fmt.Errorf("parsing flags: %w", err)
	}
	return nil
}

// Validate returns an error that names the first invalid option.
func (o *Options) Validate() error {
	const least = time.Minute
	switch {
	case o.MachineNamespace == "":
		return errors.New("--machine-namespace: is empty: must be the namespace of the Machines in the control cluster")
	case o.VMTimeout < least:
		return fmt.Errorf("--vm-timeout: is %s: must be at least %s", o.VMTimeout, least)
	}
	return nil
}

// ToContext returns a context with the options.
func (o *Options) ToContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, o)
}

// FromContext returns the options. It panics if the context has none.
func FromContext(ctx context.Context) *Options {
	return ctx.Value(key{}).(*Options) //nolint:forcetypeassert // Nothing else has the key.
}
