package kit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/patience"
)

// A Cluster is one of the API servers of a Plane, with the access of its human user.
type Cluster struct {
	Server     string
	Kubeconfig string
	Client     client.WithWatch
}

// shippedAccount is the service account in rbac-target.yaml.
var shippedAccount = client.ObjectKey{Namespace: "drover-system", Name: "drover"}

func newCluster(c localplane.Cluster) (*Cluster, error) {
	cl, err := c.Client(client.Options{Scheme: scheme()})
	return &Cluster{Server: c.Server, Kubeconfig: c.Kubeconfig, Client: cl}, err
}

// prepare a separate target cluster by the steps of docs/install.md. Its own approval of
// certificates is switched off, so that Drover must approve them.
func (c *Cluster) prepare(ctx context.Context) error {
	for _, file := range []string{localplane.TargetRights, localplane.TargetPolicies, localplane.ClientCertificateRights} {
		if err := localplane.Apply(ctx, c.Client, filepath.Join(Root(), file)); err != nil {
			return err
		}
	}
	for _, name := range []string{"kubeadm:node-autoapprove-bootstrap", "kubeadm:node-autoapprove-certificate-rotation"} {
		if err := c.Client.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	return nil
}

// As returns a client of the cluster as another user, in groups in addition to
// system:authenticated.
func (c *Cluster) As(t testing.TB, user string, groups ...string) client.WithWatch {
	t.Helper()
	return c.clientAs(t, func(cfg *rest.Config) *rest.Config {
		cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append([]string{"system:authenticated"}, groups...)}
		return cfg
	})
}

// WithToken returns a client of the cluster that authenticates with a token.
func (c *Cluster) WithToken(t testing.TB, token string) client.Client {
	t.Helper()
	return c.clientAs(t, func(cfg *rest.Config) *rest.Config {
		cfg = rest.AnonymousClientConfig(cfg)
		cfg.BearerToken = token
		return cfg
	})
}

func (c *Cluster) clientAs(t testing.TB, who func(*rest.Config) *rest.Config) client.WithWatch {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	out, err := client.NewWithWatch(who(cfg), client.Options{Scheme: scheme(), Mapper: c.Client.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Credentials of an account in a cluster. They are valid until they are revoked.
type Credentials struct {
	Kubeconfig []byte

	cluster *Cluster
	secret  *corev1.Secret
}

// Credentials returns new credentials of the account with the shipped rights.
func (c *Cluster) Credentials(t testing.TB) *Credentials {
	t.Helper()
	return c.CredentialsOf(t, shippedAccount)
}

// CredentialsOf returns new credentials of an account. If the account does not exist, it is
// created.
func (c *Cluster) CredentialsOf(t testing.TB, account client.ObjectKey) *Credentials {
	t.Helper()
	cr, err := c.credentials(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	return cr
}

func (c *Cluster) credentials(ctx context.Context, account client.ObjectKey) (*Credentials, error) {
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	if err := client.IgnoreAlreadyExists(c.Client.Create(ctx, sa)); err != nil {
		return nil, err
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: account.Namespace, GenerateName: account.Name + "-", Annotations: map[string]string{corev1.ServiceAccountNameKey: account.Name},
	}, Type: corev1.SecretTypeServiceAccountToken}
	if err := c.Client.Create(ctx, s); err != nil {
		return nil, err
	}
	if err := wait.PollUntilContextTimeout(ctx, interval, patience.Limit(), true, func(ctx context.Context) (bool, error) {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(s), s)
		return len(s.Data[corev1.ServiceAccountTokenKey]) > 0, err
	}); err != nil {
		return nil, err
	}
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: c.Server, CertificateAuthorityData: s.Data[corev1.ServiceAccountRootCAKey]}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: string(s.Data[corev1.ServiceAccountTokenKey])}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	return &Credentials{Kubeconfig: kubeconfig, cluster: c, secret: s}, err
}

// Revoke the credentials: the API server refuses them from now on.
func (c *Credentials) Revoke(t testing.TB) {
	t.Helper()
	if err := c.cluster.Client.Delete(t.Context(), c.secret); err != nil {
		t.Fatal(err)
	}
}

// configName is the name of the ProviderConfig of a fleet whose Machines join another cluster,
// and of the Secret with its kubeconfig.
const configName = "target"

// kubeconfigKey is the key of the kubeconfig in a Secret.
const kubeconfigKey = "kubeconfig"

// NewTargetFleet is a NewFleet whose Machines join the separate target cluster, in which Drover
// approves all certificates. The target cluster has a namespace of the same name, for pods.
func (p *Plane) NewTargetFleet(t testing.TB) Fleet {
	t.Helper()
	f := p.newTargetFleet(t)
	if err := f.configure(t.Context(), p.Target.Credentials(t).Kubeconfig, nil); err != nil {
		t.Fatal(err)
	}
	return f
}

// TargetFleetIn is a NewTargetFleet in a namespace that another control cluster has too, with the
// same target cluster.
func (p *Plane) TargetFleetIn(t testing.TB, namespace string) Fleet {
	t.Helper()
	f, err := p.MakeFleetIn(t.Context(), namespace)
	if err == nil {
		f.Cluster = p.Target
		err = f.configure(t.Context(), p.Target.Credentials(t).Kubeconfig, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// configure the access of the fleet to its target cluster, and the server that its Machines use
// if it is a different one.
func (f *Fleet) configure(ctx context.Context, kubeconfig []byte, server *clusterv1alpha1.APIServer) error {
	if err := f.setKubeconfig(ctx, kubeconfig); err != nil {
		return err
	}
	pc := &clusterv1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: configName}}
	pc.Spec = configSpec("", configName)
	pc.Spec.APIServer = server
	f.config = machinev1alpha1.ClusterReference{Kind: clusterv1alpha1.ProviderConfigGroupVersionKind.Kind, Name: pc.Name}
	return f.Client.Create(ctx, pc)
}

// NewSharedTargetFleet is a NewTargetFleet whose configuration is not in its namespace. Such a
// configuration serves many namespaces: the Machines' namespace has no credentials. When the test
// ends, the configuration is deleted.
func (p *Plane) NewSharedTargetFleet(t testing.TB) Fleet {
	t.Helper()
	f := p.newTargetFleet(t)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: f.Namespace}}
	s.Data = map[string][]byte{kubeconfigKey: p.Target.Credentials(t).Kubeconfig}
	f.Create(t, s)
	pc := &clusterv1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}
	pc.Spec.ProviderConfigSpec = configSpec(s.Namespace, s.Name)
	pc.Spec.AllowedNamespaces = []clusterv1alpha1.NamespacePattern{clusterv1alpha1.NamespacePattern(f.Namespace)}
	f.Create(t, pc)
	t.Cleanup(func() {
		for _, o := range []client.Object{pc, s} {
			if err := p.Client.Delete(context.Background(), o); err != nil {
				t.Error(err)
			}
		}
	})
	f.config = machinev1alpha1.ClusterReference{Kind: clusterv1alpha1.ClusterProviderConfigGroupVersionKind.Kind, Name: pc.Name}
	return f
}

func (p *Plane) newTargetFleet(t testing.TB) Fleet {
	t.Helper()
	f, err := p.makeTargetFleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (p *Plane) makeTargetFleet(ctx context.Context) (Fleet, error) {
	if p.Target == nil {
		return Fleet{}, errors.New("the control plane was started without Options.Target")
	}
	f, err := p.MakeFleet(ctx)
	if err != nil {
		return f, err
	}
	f.Cluster = p.Target
	return f, f.Cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}})
}

func configSpec(namespace, secret string) clusterv1alpha1.ProviderConfigSpec {
	return clusterv1alpha1.ProviderConfigSpec{
		Credentials: clusterv1alpha1.Credentials{
			Source:    clusterv1alpha1.CredentialsSecret,
			SecretRef: &clusterv1alpha1.SecretKeySelector{Namespace: namespace, Name: secret, Key: kubeconfigKey},
		},
	}
}

// SetKubeconfig writes the kubeconfig that Drover uses for the target cluster.
func (f Fleet) SetKubeconfig(t testing.TB, kubeconfig []byte) {
	t.Helper()
	if err := f.setKubeconfig(t.Context(), kubeconfig); err != nil {
		t.Fatal(err)
	}
}

func (f Fleet) setKubeconfig(ctx context.Context, kubeconfig []byte) error {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: configName}}
	s.Data = map[string][]byte{kubeconfigKey: kubeconfig}
	err := f.Client.Update(ctx, s)
	if client.IgnoreNotFound(err) == nil && err != nil {
		err = f.Client.Create(ctx, s)
	}
	return err
}

// Config is the configuration of a fleet whose Machines join another cluster.
func (f Fleet) Config(ctx context.Context) (*clusterv1alpha1.ProviderConfig, error) {
	pc := &clusterv1alpha1.ProviderConfig{}
	return pc, f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: configName}, pc)
}

// isKubeconfig reports whether a name of namesIn is the kubeconfig's Secret, which a fleet has
// even without Machines.
func (f Fleet) isKubeconfig(name string) bool {
	return f.Cluster != f.Control && name == fmt.Sprintf("%T %s", &corev1.Secret{}, configName)
}
