package plugin

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// startTimeout bounds the start of a program until it serves its protocol. The largest take 10 seconds if many
// processes compete for the CPU.
const startTimeout = time.Minute

// handshake is checked by providers of Terraform, so that users do not start them directly.
var handshake = goplugin.HandshakeConfig{
	MagicCookieKey:   "TF_PLUGIN_MAGIC_COOKIE",
	MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
}

// environment variables that a provider inherits: for access to the network, and for writable folders. All
// other ones belong to the controller, including the token of its pod.
var inherited = []string{
	"PATH", "HOME", "TMPDIR", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

// A served plugin has the connection of gRPC.
type served struct {
	goplugin.NetRPCUnsupportedPlugin
	version int
}

func (served) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("providers are not served here")
}

func (s served) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &Provider{conn: conn, version: s.version}, nil
}

// A process of a provider.
type process struct {
	client   *goplugin.Client
	provider *Provider
}

// start starts the program of a provider, if it has the digest at the moment that it is started.
func start(program string, digest []byte) (*process, error) {
	cmd := exec.Command(program) //nolint:noctx // It outlives the call that starts it.
	cmd.Env = environment(os.Environ())
	endWithParent(cmd)
	c := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: handshake,
		VersionedPlugins: map[int]goplugin.PluginSet{
			5: {"provider": served{version: 5}},
			6: {"provider": served{version: 6}},
		},
		Cmd:              cmd,
		SecureConfig:     &goplugin.SecureConfig{Checksum: digest, Hash: sha256.New()},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     startTimeout,
		// The log of a provider may have credentials and user data.
		Logger:     hclog.NewNullLogger(),
		SyncStdout: io.Discard,
		SyncStderr: io.Discard,
		Stderr:     io.Discard,
	})
	p, err := dispense(c)
	if err != nil {
		c.Kill()
		return nil, err
	}
	return &process{client: c, provider: p}, nil
}

func dispense(c *goplugin.Client) (*Provider, error) {
	conn, err := c.Client()
	if err != nil {
		return nil, err
	}
	got, err := conn.Dispense("provider")
	if err != nil {
		return nil, err
	}
	p, ok := got.(*Provider)
	if !ok {
		return nil, errors.New("the plugin is no provider")
	}
	return p, nil
}

func environment(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains(inherited, name)
	})
}
