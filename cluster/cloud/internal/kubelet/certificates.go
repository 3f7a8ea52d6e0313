package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// keepCertificates renews the client certificate and keeps a serving
// certificate, as far as the kubelet is configured to. It is not client-go's
// manager because that one, once it waits, does not end with its context.
func (k *kubelet) keepCertificates(ctx context.Context, all *sync.WaitGroup) {
	if k.RotateCertificates {
		// New requests go out over new connections, with the new certificate.
		all.Go(func() { k.keep(ctx, k.clientCertificate(), k.conns.close) })
	}
	if k.ServingCertificate {
		all.Go(func() { k.keep(ctx, k.servingCertificate(), func() {}) })
	}
}

func (k *kubelet) keep(ctx context.Context, c certificateKind, renewed func()) {
	for ctx.Err() == nil {
		s := k.saved()
		if wait := renewAt(*c.pair(&s), rand.Float64()).Sub(k.clock.Now()); wait > 0 {
			timer := k.clock.NewTimer(wait)
			select {
			case <-ctx.Done():
			case <-timer.C():
			}
			timer.Stop()
			continue
		}
		k.retry(ctx, "renew certificate of "+c.signer, func(ctx context.Context) error {
			key, err := keyutil.MakeEllipticPrivateKeyPEM()
			if err != nil {
				return fmt.Errorf("make key: %w", err)
			}
			cert, err := k.sign(ctx, k.client, c, key)
			if err != nil {
				return err
			}
			return k.save(func(s *State) { *c.pair(s) = KeyPair{Key: key, Certificate: cert} })
		})
		renewed()
	}
}

// renewAt is when a certificate is to be renewed: after 70 to 90 % of its life,
// by chance from 0 to 1, so that the VMs of a cluster do not come all at once.
// One that is missing or damaged is due.
func renewAt(p KeyPair, chance float64) time.Time {
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return time.Time{}
	}
	life := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
	return pair.Leaf.NotBefore.Add(time.Duration((0.7 + 0.2*chance) * float64(life)))
}
