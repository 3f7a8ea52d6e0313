package kubelet

import (
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

func TestACertificateIsRenewedLateInItsLife(t *testing.T) {
	cert, key, err := certutil.GenerateSelfSignedCertKey("host", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := certutil.ParseCertsPEM(cert)
	if err != nil {
		t.Fatal(err)
	}
	from, life := parsed[0].NotBefore, parsed[0].NotAfter.Sub(parsed[0].NotBefore)
	cases := map[string]struct {
		pair   KeyPair
		chance float64
		want   time.Time
	}{
		"EarlyByChance": {KeyPair{key, cert}, 0, from.Add(life * 7 / 10)},
		"LateByChance":  {KeyPair{key, cert}, 1, from.Add(life * 9 / 10)},
		"MissingIsDue":  {KeyPair{Key: key}, 1, time.Time{}},
		"DamagedIsDue":  {KeyPair{key, cert[:50]}, 1, time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := renewAt(tc.pair, tc.chance); got.Sub(tc.want).Abs() > time.Second {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
