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

// keepCertificates renews the client certificate and keeps a serving certificate, as the kubelet is
// configured. It does not use client-go's manager, which does not end with its context while it
// waits.
func (k *kubelet) keepCertificates(ctx context.Context, all *sync.WaitGroup) {
	if k.RotateCertificates {
		// New requests must use new connections, with the new certificate.
		all.Go(func() { k.keep(ctx, k.clientCertificate(), k.conns.close) })
	}
	if k.ServingCertificate {
		all.Go(func() { k.keep(ctx, k.servingCertificate(), func() {}) })
	}
}

func (k *kubelet) keep(ctx context.Context, c certificateKind, renewed func()) {
	for ctx.Err() == nil {
		s := k.saved()
		if wait := renewAt(*c.pair(&s), rand.Float64()).Sub(k.clock.Now()); wait > 0 { //nolint:gosec // It spreads the load.
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

// renewAt returns when to renew a certificate: after 70 to 90 % of its lifetime. The random chance,
// 0 to 1, spreads the requests of a cluster's VMs. A missing or damaged certificate is due now.
func renewAt(p KeyPair, chance float64) time.Time {
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return time.Time{}
	}
	life := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
	return pair.Leaf.NotBefore.Add(time.Duration((0.7 + 0.2*chance) * float64(life)))
}
