package runtime

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/cluster/internal/apply"
	"github.com/drover-dev/drover/cluster/internal/certs"
	"github.com/drover-dev/drover/cluster/internal/crossplane"
	"github.com/drover-dev/drover/cluster/internal/files"
)

const (
	keyCert = corev1.TLSCertKey
	keyKey  = corev1.TLSPrivateKeyKey
	keyCA   = "ca.crt"
)

// certificate ensures that the Secret has a certificate that Crossplane's authority issued, and
// that folder has the same content as files.
func certificate(ctx context.Context, c client.Client, secret string, owner metav1.OwnerReference, folder string,
	issue func(*certs.Authority) (certs.Pair, error),
) error {
	root := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: crossplane.Namespace, Name: crossplane.RootCASecret}, root); err != nil {
		return err
	}
	s := &corev1.Secret{}
	key := client.ObjectKey{Namespace: crossplane.Namespace, Name: secret}
	if err := c.Get(ctx, key, s); client.IgnoreNotFound(err) != nil {
		return err
	}
	data := s.Data
	if len(data[keyCert]) == 0 || len(data[keyKey]) == 0 || !bytes.Equal(data[keyCA], root.Data[keyCert]) {
		authority, err := certs.LoadAuthority(certs.Pair{Cert: root.Data[keyCert], Key: root.Data[keyKey]})
		if err != nil {
			return fmt.Errorf("secret %s: %w", crossplane.RootCASecret, err)
		}
		pair, err := issue(authority)
		if err != nil {
			return err
		}
		data = map[string][]byte{keyCert: pair.Cert, keyKey: pair.Key, keyCA: root.Data[keyCert]}
	}
	// Apply it even if the data exist already: the owner must be the revision that is active now.
	if err := apply.Object(ctx, c, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, OwnerReferences: []metav1.OwnerReference{owner}},
		Data:       data,
	}); err != nil {
		return err
	}
	for _, name := range []string{keyCert, keyKey, keyCA} {
		if err := files.Write(folder+"/"+name, data[name]); err != nil {
			return err
		}
	}
	return nil
}

// serverCertificate is valid for the address that the process listens on, and for the Service that
// it would have in the cluster.
func serverCertificate(id identity) func(*certs.Authority) (certs.Pair, error) {
	service := id.Package + "." + crossplane.Namespace
	return func(a *certs.Authority) (certs.Pair, error) {
		return a.Server(id.Package, []string{"localhost", id.Package, service, service + ".svc", service + ".svc.cluster.local"},
			[]net.IP{net.IPv4(127, 0, 0, 1)}, time.Now())
	}
}

func clientCertificate(id identity) func(*certs.Authority) (certs.Pair, error) {
	return func(a *certs.Authority) (certs.Pair, error) {
		return a.Client(id.Revision, nil, []string{id.Revision}, time.Now())
	}
}
