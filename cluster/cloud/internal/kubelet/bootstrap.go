package kubelet

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/keyutil"
)

// bootstrap gets the client certificate with the bootstrap token. The key is stored before it is
// used, and the name of the request derives from it, so that a kubelet that is interrupted
// continues with its earlier request.
func (k *kubelet) bootstrap(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(k.Bootstrap)
	if err != nil {
		return err
	}
	if len(k.saved().Client.Key) == 0 {
		key, err := keyutil.MakeEllipticPrivateKeyPEM()
		if err != nil {
			return fmt.Errorf("make key: %w", err)
		}
		if err := k.save(func(s *State) { s.Client.Key = key }); err != nil {
			return err
		}
	}
	cert, err := k.sign(ctx, client, k.clientCertificate(), k.saved().Client.Key)
	if errors.Is(err, errNotSigned) && ctx.Err() == nil {
		// The request was denied, failed or deleted: it will never be signed.
		return errors.Join(err, k.save(func(s *State) { s.Client.Key = nil }))
	}
	if err != nil {
		return err
	}
	if err := k.save(func(s *State) { s.Client.Certificate = cert }); err != nil {
		return err
	}
	k.host.Console("kubelet: got its client certificate as system:node:%s", k.NodeName)
	return nil
}
