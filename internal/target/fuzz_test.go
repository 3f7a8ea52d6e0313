package target

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParseKubeconfig parses arbitrary content of a Secret: it must not crash the provider, read its files, run
// a command, or be quoted.
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
		strings.Replace(goodKubeconfig, "{server:", "{insecure-skip-tls-verify: true, server:", 1),
		strings.Replace(goodKubeconfig, "https://127.0.0.1:1", "http://u:p@169.254.169.254/?a=b#c", 1),
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, ofTenant bool) {
		cfg, err := parseKubeconfig(data, ofTenant)
		if err != nil {
			// Errors quote the names of contexts, clusters and users. Those may be anything.
			if text := err.Error(); utf8.Valid(data) && strings.Contains(string(data), "token: "+secret) && strings.Contains(text, secret) {
				t.Errorf("the error quotes the Secret: %v", err)
			}
			return
		}
		if cfg.Host == "" || cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.BearerTokenFile != "" ||
			cfg.CertFile != "" || cfg.KeyFile != "" || cfg.CAFile != "" {
			t.Errorf("host %q, exec %v, auth provider %v, files %q %q %q %q", cfg.Host, cfg.ExecProvider, cfg.AuthProvider, cfg.BearerTokenFile, cfg.CertFile, cfg.KeyFile, cfg.CAFile)
		}
		if u, err := url.Parse(cfg.Host); err != nil || u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
			t.Errorf("server %q, %v", cfg.Host, err)
		}
		if ofTenant && (cfg.Proxy != nil || cfg.Insecure) {
			t.Errorf("a tenant's proxy %v, insecure %v", cfg.Proxy != nil, cfg.Insecure)
		}
	})
}

func FuzzParseNetworks(f *testing.F) {
	for _, s := range []string{"", "10.0.0.0/8", "::1", "fe80::1%eth0", "::ffff:127.0.0.0/104", "1.2.3.4/33", "0/0", "10.1.2.3/8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseNetworks("--x", []string{s})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "--x: invalid value ") {
				t.Error(err)
			}
			return
		}
		again, err := ParseNetworks("--x", []string{got[0].String()})
		if err != nil || !slices.Equal(got, again) || got[0] != got[0].Masked() {
			t.Errorf("%q is %v, and that %v, %v", s, got, again, err)
		}
	})
}
