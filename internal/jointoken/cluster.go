package jointoken

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// A Cluster is the access to a target cluster that this package needs.
type Cluster struct {
	// Kube is a client of the target cluster.
	Kube kubernetes.Interface
	// Classify turns errors of the client into errors that name the configuration.
	Classify func(error) error
	// Host and CA are how this process reaches the API server. Kubelets use them if
	// neither the configuration nor the cluster has an endpoint.
	Host string
	CA   []byte
	// APIServer is the endpoint for kubelets in the configuration, nil if it has none.
	APIServer *clusterv1alpha1.APIServer
	// ConfigUID is the UID of the configuration.
	ConfigUID types.UID
	// Version returns the version of the API server, empty if the cluster does not report it. If Version is nil,
	// it is unknown.
	Version func(context.Context) (string, error)
	// CheckNode returns an error if the configuration does not allow the labels or taints that the Machine desires
	// on its Node. Nil allows all.
	CheckNode func(*machinev1alpha1.Machine) error
}

// A Connect function returns the target cluster of a configuration, without a call to it.
type Connect func(context.Context, target.Ref) (Cluster, error)

// ConnectThrough returns a Connect function that uses the connections of a Pool.
func ConnectThrough(pool *target.Pool) Connect {
	return func(ctx context.Context, ref target.Ref) (Cluster, error) {
		conn, err := pool.Get(ctx, ref)
		if err != nil {
			return Cluster{}, err
		}
		return clusterOf(conn), nil
	}
}

// A ConnectFor function returns the target cluster that a Machine joins, if the Machine may use
// it, without a call to it.
type ConnectFor func(context.Context, *machinev1alpha1.Machine) (Cluster, error)

// ConnectMachinesThrough returns a ConnectFor function that uses the connections of a Pool.
func ConnectMachinesThrough(pool *target.Pool) ConnectFor {
	return func(ctx context.Context, m *machinev1alpha1.Machine) (Cluster, error) {
		conn, err := pool.For(ctx, m)
		if err != nil {
			return Cluster{}, err
		}
		return clusterOf(conn), nil
	}
}

func clusterOf(conn *target.Conn) Cluster {
	return Cluster{
		Kube: conn.Kube, Classify: conn.Classify,
		Host: conn.Host, CA: conn.CA, APIServer: conn.Spec.APIServer, ConfigUID: conn.UID, CheckNode: conn.CheckNode, Version: conn.Version,
	}
}
