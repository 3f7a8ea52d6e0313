package target

import (
	"encoding/base64"
	"strings"
	"testing"
)

const goodKubeconfig = `
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: very-secret}}]
`

func TestParseKubeconfig(t *testing.T) {
	user := func(u string) string { return strings.Replace(goodKubeconfig, "token: very-secret", u, 1) }
	server := func(u string) string { return strings.Replace(goodKubeconfig, "https://127.0.0.1:1", u, 1) }
	cluster := func(fields string) string {
		return strings.Replace(goodKubeconfig, "{server:", "{"+fields+", server:", 1)
	}
	cases := map[string]struct {
		kubeconfig string
		ofTenant   bool
		err        string
	}{
		"AGoodOneIsRead":              {kubeconfig: goodKubeconfig},
		"GarbageIsNoKubeconfig":       {kubeconfig: "very-secret: [", err: "is not a kubeconfig"},
		"AWrongTypeIsNotQuoted":       {kubeconfig: "clusters: very-secret", err: "is not a kubeconfig"},
		"AnEmptyOneIsNone":            {err: "is empty: must be a kubeconfig"},
		"AnEncodedOneIsToldApart":     {kubeconfig: base64.StdEncoding.EncodeToString([]byte(goodKubeconfig)), err: "is base64 of a kubeconfig: must be the kubeconfig itself"},
		"WithoutAContextItIsNone":     {kubeconfig: "apiVersion: v1\nkind: Config\n", err: `current-context "" is not one of its contexts`},
		"TheContextMustBeThere":       {kubeconfig: strings.Replace(goodKubeconfig, "current-context: c", "current-context: d", 1), err: `current-context "d" is not one of its contexts`},
		"TheClusterMustHaveAServer":   {kubeconfig: strings.Replace(goodKubeconfig, `server: "https://127.0.0.1:1"`, "", 1), err: `the context's cluster "k" has no server`},
		"TheUserMustBeThere":          {kubeconfig: strings.Replace(goodKubeconfig, "user: u}", "user: w}", 1), err: `the context's user "w" is not one of its users`},
		"CommandsAreNotRun":           {kubeconfig: user(`exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}`), err: "exec is refused"},
		"OurOwnTokenCannotBeSentAway": {kubeconfig: user(`tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token`), err: "tokenFile is refused"},
		"ClientCertificateFilesAreNotRead": {kubeconfig: user(`client-certificate: /a, client-key-data: Yg==`),
			err: "client-certificate is refused"},
		"CAFilesAreNotRead": {kubeconfig: strings.Replace(goodKubeconfig, `{server:`, `{certificate-authority: /a, server:`, 1),
			err: "certificate-authority is refused"},
		"TheServerMustSpeakTLS":        {kubeconfig: server("http://169.254.169.254/latest"), err: `the server of the context's cluster has the scheme "http": must be https`},
		"TheServerMustBeAURL":          {kubeconfig: server("127.0.0.1:6443"), err: "must be a URL like https://10.0.0.1:6443"},
		"APasswordInTheURLIsNotShown":  {kubeconfig: server("https://u:very-secret@127.0.0.1:1"), err: "must be a URL like https://10.0.0.1:6443"},
		"AQueryIsRefused":              {kubeconfig: server("https://127.0.0.1:1/?role=admin"), err: "must be a URL like https://10.0.0.1:6443"},
		"AnOperatorMayChooseAProxy":    {kubeconfig: cluster("proxy-url: 'http://127.0.0.1:3128'")},
		"ATenantMayNotChooseAProxy":    {kubeconfig: cluster("proxy-url: 'http://127.0.0.1:3128'"), ofTenant: true, err: "proxy-url is refused in a kubeconfig of a ProviderConfig: only a ClusterProviderConfig may have it"},
		"AnOperatorMayTrustAnyServer":  {kubeconfig: cluster("insecure-skip-tls-verify: true")},
		"ATenantMayNotTrustAnyServer":  {kubeconfig: cluster("insecure-skip-tls-verify: true"), ofTenant: true, err: "insecure-skip-tls-verify is refused"},
		"AGoodOneOfATenantIsRead":      {kubeconfig: goodKubeconfig, ofTenant: true},
		"ACertificateNameOfATenantToo": {kubeconfig: cluster("tls-server-name: kubernetes"), ofTenant: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg, err := parseKubeconfig([]byte(tc.kubeconfig), tc.ofTenant)
			if tc.err == "" {
				if err != nil || cfg.Host != "https://127.0.0.1:1" || cfg.BearerToken != "very-secret" {
					t.Fatalf("host %v, error %v", cfg, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if strings.Contains(err.Error(), "very-secret") {
				t.Errorf("the error quotes the Secret: %v", err)
			}
		})
	}
}
