// Package plugintest has a Terraform provider whose cloud is a directory, and runs it as a real
// program, by both versions of the plugin protocol.
//
// The program is the test binary itself, under the name of a provider: TestMain must call [Main].
package plugintest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Address of the provider. The version of its protocol is appended.
const Address = "drover-dev/fake"

// Version of the provider.
const Version = "1.2.3"

const prefix = "terraform-provider-fake"

// Main serves the provider and exits, if the process was started as one.
func Main() {
	name := filepath.Base(os.Args[0])
	if !strings.HasPrefix(name, prefix) {
		return
	}
	version := 6
	if strings.HasPrefix(name, prefix+"5") {
		version = 5
	}
	err := providerserver.Serve(context.Background(), func() provider.Provider { return &fake{} },
		providerserver.ServeOpts{Address: "registry.terraform.io/" + Address, ProtocolVersion: version})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Mirror makes a mirror with the provider in a directory, and returns the digest of its program.
func Mirror(t testing.TB, protocol int) (dir, digest string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	return dir, Put(t, dir, fmt.Sprintf("%s%d", Address, protocol), Version, self)
}

// Put copies a program into a mirror, and returns its digest.
func Put(t testing.TB, mirror, address, version, program string) string {
	t.Helper()
	digest, err := Place(mirror, address, version, program)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// Place copies a program into a mirror, and returns its digest.
func Place(mirror, address, version, program string) (string, error) {
	typ := address[strings.LastIndex(address, "/")+1:]
	to := filepath.Join(mirror, "registry.terraform.io", filepath.FromSlash(address), version,
		runtime.GOOS+"_"+runtime.GOARCH, fmt.Sprintf("terraform-provider-%s_v%s", typ, version))
	b, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), os.WriteFile(to, b, 0o755)
}

type fake struct{}

type fakeConfig struct {
	Dir   types.String `tfsdk:"dir"`
	Token types.String `tfsdk:"token"`
}

func (*fake) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "fake"
}

func (*fake) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"dir":   schema.StringAttribute{Required: true},
		"token": schema.StringAttribute{Optional: true, Sensitive: true},
	}}
}

// Configure accepts any token but "wrong".
func (*fake) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var c fakeConfig
	resp.Diagnostics.Append(req.Config.Get(ctx, &c)...)
	if c.Token.ValueString() == "wrong" {
		resp.Diagnostics.AddAttributeError(path.Root("token"), "401 Unauthorized", "the token "+c.Token.ValueString()+" is not valid")
	}
	resp.ResourceData = cloud(c.Dir.ValueString())
}

func (*fake) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &vm{} }}
}

func (*fake) DataSources(context.Context) []func() datasource.DataSource { return nil }

// A cloud is a directory with a file for each VM.
type cloud string

// A Record is a VM in the cloud.
type Record struct {
	ID, Name, Size, UserData, State string
	Tags                            map[string]string
	// PID of the process that created it.
	PID int
}

func (c cloud) file(id string) string { return filepath.Join(string(c), filepath.Base(id)+".json") }

func (c cloud) read(id string) (*Record, error) {
	b, err := os.ReadFile(c.file(id))
	if err != nil {
		return nil, err
	}
	r := &Record{}
	return r, json.Unmarshal(b, r)
}

func (c cloud) write(r *Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(c.file(r.ID), b, 0o600)
}

// List returns the VMs of a cloud.
func List(t testing.TB, dir string) []Record {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out []Record
	for _, f := range files {
		r, err := cloud(dir).read(strings.TrimSuffix(filepath.Base(f), ".json"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, *r)
	}
	return out
}

// Lose deletes a VM without the provider.
func Lose(t testing.TB, dir, id string) {
	t.Helper()
	if err := os.Remove(cloud(dir).file(id)); err != nil {
		t.Fatal(err)
	}
}

// Names of VMs that the cloud treats in a special way.
const (
	// Refused is never created.
	Refused = "refused"
	// HalfMade is created and then fails.
	HalfMade = "half-made"
	// Lost ends the connection after the VM was created: the response is lost.
	Lost = "lost-answer"
	// Crash ends the provider after the VM was created.
	Crash = "crash"
)

// slow is how long the creation of a VM takes whose name begins with "slow".
const slow = 2 * time.Second
