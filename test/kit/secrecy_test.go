package kit

import (
	"encoding/base64"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestALeakIsFound(t *testing.T) {
	const token, signature = "abcdef.0123456789abcdef", "c2lnbmF0dXJlLW9mLWEtand0"
	key := []byte("-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY/PuoAoGCCqGSM49\nAwEHoUQDQgAEPR3tU2Fta9ktY+6P9G0cWO+0kETA6SFs38GecTyudlHz6xvCdz8q\nEKTcWGekdmdDPsHloRNtsiCa697B2O9IFA==\n-----END EC PRIVATE KEY-----\n")
	w := &Witness{secrets: map[string]string{}, tokens: map[string]map[string]bool{}}
	w.keep(&corev1.Secret{Type: "connection.crossplane.io/v1alpha1", Data: map[string][]byte{"token": []byte(token), "server": []byte("https://10.0.0.1:6443")}})
	w.keep(&corev1.Secret{Data: map[string][]byte{"tls.key": key, "ca.crt": []byte("-----BEGIN CERTIFICATE-----\n")}})
	w.keep(&corev1.Secret{Data: map[string][]byte{"kubeconfig": []byte("apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: header.claims." + signature + "}}]\n")}})
	w.keep(&corev1.Secret{Data: map[string][]byte{"credentials": []byte(`{"endpoint": "http://127.0.0.1:8088", "token": "of-the-local-cloud"}`)}})

	encoded := base64.StdEncoding.EncodeToString
	for name, text := range map[string]string{
		"AsItIs":                     "joined with " + token,
		"TheSecretHalf":              `{"message": "0123456789abcdef"}`,
		"InBase64":                   encoded([]byte("token: " + token + "\n")),
		"InBase64OneLater":           encoded([]byte(" token: " + token + "\n")),
		"InBase64TwoLater":           encoded([]byte("  token: " + token + "\n")),
		"APrivateKey":                string(key),
		"APrivateKeyInAKubeconfig":   "client-key-data: " + encoded(key),
		"ATokenOfAKubeconfig":        "Bearer header.claims." + signature,
		"ATokenOfACloud":             "of-the-local-cloud",
		"ATokenInTheMiddleOfABigLog": string(make([]byte, 1<<16)) + token + string(make([]byte, 1<<16)),
	} {
		t.Run(name, func(t *testing.T) {
			if len(w.leaksIn("f", []byte(text))) == 0 {
				t.Error("not found")
			}
		})
	}
	if leaks := w.leaksIn("f", []byte("token abcdef of https://10.0.0.1:6443 http://127.0.0.1:8088 -----BEGIN CERTIFICATE-----")); len(leaks) > 0 {
		t.Errorf("what is no secret is taken for one: %v", leaks)
	}
	if got := w.Tokens(""); len(got) != 1 || got[0] != token {
		t.Errorf("tokens %v", got)
	}
}
