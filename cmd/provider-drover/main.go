// Command provider-drover runs the controllers of Machines, of their Nodes and tokens in target
// clusters, and of the deletion of their sets.
package main

import "github.com/drover-dev/drover/internal/operator"

// flags are the flags that only provider-drover has.
type flags struct {
	InjectedIdentityFor []string `help:"Names of the ClusterProviderConfigs that may have the source InjectedIdentity: their Machines become Nodes of the cluster that this provider runs in. Default: none." env:"INJECTED_IDENTITY_FOR" placeholder:"NAME"`

	AllowTargetNetworks []string `help:"Networks that ProviderConfigs may connect to although they are denied otherwise: loopback, link-local, multicast, unspecified, metadata services of clouds, and --deny-target-networks. ClusterProviderConfigs may connect to all. Default: none." env:"ALLOW_TARGET_NETWORKS" placeholder:"CIDR"`
	DenyTargetNetworks  []string `help:"More networks that ProviderConfigs may not connect to, such as the Services and pods of the cluster that this provider runs in. The address of its API server is always denied." env:"DENY_TARGET_NETWORKS" placeholder:"CIDR"`
}

func main() {
	operator.Main(newOperator(&flags{}))
}

func newOperator(f *flags) operator.Operator {
	return operator.Operator{
		Name:        "provider-drover",
		Description: "Makes Machines of the Compositions of their clouds, joins them to Kubernetes clusters, drains their Nodes, and deletes them in order.",
		AddToScheme: addToScheme,
		Flags:       f,
		Setup:       f.setup,
	}
}
