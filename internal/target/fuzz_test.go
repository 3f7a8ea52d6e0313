package target

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParseKubeconfig reads what whoever may write the Secret put into it: it must not
// end the provider, read its files, run a command, or be quoted.
func FuzzParseKubeconfig(f *testing.F) {
	const secret = "very-secret"
	for _, s := range []string{
		goodKubeconfig,
		"",
		"very-secret: [",
		"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: null}, null]\nclusters: [{}]\nusers: {}",
		strings.Replace(goodKubeconfig, "token: very-secret", "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}", 1),
		strings.Replace(goodKubeconfig, "token: very-secret", "tokenFile: /etc/hostname, token: very-secret", 1),
		strings.Replace(goodKubeconfig, "token: very-secret", "client-certificate-data: YQ==, client-key-data: Yg==, as: root", 1),
		strings.Replace(goodKubeconfig, "{server:", "{certificate-authority-data: bm9uZQ==, proxy-url: 'http://a b', tls-server-name: x, server:", 1),
		strings.Replace(goodKubeconfig, `"https://127.0.0.1:1"`, `"://"`, 1),
		`{"apiVersion": "v1", "kind": "Config", "users": [{"user": {"auth-provider": {"name": "very-secret"}}}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := parseKubeconfig(data)
		if err != nil {
			// Names of contexts, clusters and users are told. Those may be anything.
			if text := err.Error(); utf8.Valid(data) && strings.Contains(string(data), "token: "+secret) && strings.Contains(text, secret) {
				t.Errorf("the error quotes the Secret: %v", err)
			}
			return
		}
		if cfg.Host == "" || cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.BearerTokenFile != "" ||
			cfg.CertFile != "" || cfg.KeyFile != "" || cfg.CAFile != "" {
			t.Errorf("host %q, exec %v, auth provider %v, files %q %q %q %q", cfg.Host, cfg.ExecProvider, cfg.AuthProvider, cfg.BearerTokenFile, cfg.CertFile, cfg.KeyFile, cfg.CAFile)
		}
	})
}
