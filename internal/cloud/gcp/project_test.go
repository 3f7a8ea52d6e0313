package gcp

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/test/fakes/gcptest"
)

func TestCredentials(t *testing.T) {
	inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
		w.state.Set(vms(3))
		l := w.lister(t)
		mustList(t, l, 3)

		rotated, _ := w.newKey(t, at)
		w.DeleteKey(account, w.keyID)
		mustFail(t, t.Context(), l, "PermissionDenied: 401 authError: Request had invalid authentication credentials.")
		err := mustFail(t, t.Context(), w.lister(t), "PermissionDenied: cannot get a token: 400 invalid_grant: Invalid JWT Signature.")
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v", err)
		}
		mustList(t, w.lister(t, func(o *Options) { o.Credentials = rotated }), 3)

		forged := change(t, rotated, "private_key", field(t, w.key, "private_key"))
		mustFail(t, t.Context(), w.lister(t, func(o *Options) { o.Credentials = forged }), "invalid_grant: Invalid JWT Signature.")
		unknown := change(t, rotated, "client_email", "nobody@my-project.iam.gserviceaccount.com")
		mustFail(t, t.Context(), w.lister(t, func(o *Options) { o.Credentials = unknown }), "invalid_grant: Invalid grant: account not found")
	})
}

func TestATokenIsRenewed(t *testing.T) {
	inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
		l := w.lister(t)
		mustList(t, l, 0)
		time.Sleep(2 * time.Hour) // Of the clock of the test, which passes at once.
		mustList(t, l, 0)
		if calls, _ := w.Calls(); calls[gcptest.TokenCall] != 2 {
			t.Errorf("calls %v", calls)
		}
	})
}

func TestPermissions(t *testing.T) {
	inWorld(t, gcptest.Options{}, func(t *testing.T, w *world) {
		w.Grant(account, "compute.instances.list")
		l := w.lister(t)
		mustList(t, l, 0)
		if found, complete, err := l.ListResources(t.Context(), ours); len(found) > 0 || complete || err == nil || !strings.Contains(err.Error(), "PermissionDenied: 403 forbidden: Required 'compute.disks.list' permission for 'projects/my-project'") {
			t.Errorf("%d resources, complete: %t, error %v", len(found), complete, err)
		}
		w.Grant(account)
		mustFail(t, t.Context(), l, "PermissionDenied: 403 forbidden: Required 'compute.instances.list' permission for 'projects/my-project'")
		mustFail(t, t.Context(), w.lister(t, func(o *Options) { o.ProjectID = "your-project" }), "404 notFound: The resource 'projects/your-project' was not found")
	})
}

func TestOptionsThatAreNotValidAreRefusedAtOnce(t *testing.T) {
	w := newWorld(t, gcptest.Options{}, at)
	cases := map[string]struct {
		change func(*Options)
		want   string
	}{
		"TheSecretIsEmpty":          {func(o *Options) { o.Credentials = []byte{} }, "credentials: must be the key of a service account"},
		"TheSecretIsNotJSON":        {func(o *Options) { o.Credentials = []byte("hunter2") }, "credentials: must be the key of a service account"},
		"TheTypeRunsACommand":       {func(o *Options) { o.Credentials = change(t, w.key, "type", "external_account") }, `credentials: type: invalid value "external_account": must be service_account`},
		"ThereIsNoAccount":          {func(o *Options) { o.Credentials = change(t, w.key, "client_email", "") }, "credentials: client_email: must not be empty"},
		"TheKeyIsNone":              {func(o *Options) { o.Credentials = change(t, w.key, "private_key", "hunter2") }, "credentials: private_key: must be a private key in PEM"},
		"TheTokenURIIsNotEncrypted": {func(o *Options) { o.Credentials = change(t, w.key, "token_uri", "http://example.org/token") }, `credentials: token_uri: invalid value "http://example.org/token": must be a URL that begins with https://`},
		"NothingNamesTheProject":    {func(o *Options) { o.Credentials = change(t, w.key, "project_id", "") }, `projectID: invalid value "": must be the ID of a project`},
		"TheProjectIsANumber":       {func(o *Options) { o.ProjectID = "123456789012" }, `projectID: invalid value "123456789012": must be the ID of a project`},
		"TheEndpointIsNotEncrypted": {func(o *Options) { o.Endpoint = "http://example.org/compute/v1/" }, `endpoint: invalid value "http://example.org/compute/v1/": must be a URL that begins with https://`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Options{Credentials: w.key, Transport: w.Transport()}
			tc.change(&o)
			l, err := New(t.Context(), o)
			if l != nil || err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "PRIVATE KEY") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// The metadata server is found once in a process, by an environment variable.
func TestThePodsIdentity(t *testing.T) {
	cloud := gcptest.New(gcptest.Options{State: &gcptest.Memory{}, Project: projectOfTest})
	cloud.Grant(account, gcptest.Viewer...)
	server := httptest.NewServer(cloud)
	defer server.Close()
	ofThePod := Options{Endpoint: server.URL + "/compute/v1"}
	t.Setenv("HOME", t.TempDir())
	t.Run("TheServiceAccountOfTheMetadataServer", func(t *testing.T) {
		t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
		cloud.SetMachineAccount(account)
		l, err := New(t.Context(), ofThePod)
		if err != nil {
			t.Fatal(err)
		}
		mustList(t, l, 0)
	})
	t.Run("AFileThatIsNotThere", func(t *testing.T) {
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "missing.json"))
		if l, err := New(t.Context(), ofThePod); l != nil || err == nil || !strings.HasPrefix(err.Error(), "PermissionDenied: the pod has no identity, and there is no Secret with credentials: ") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("AFileThatTheEnvironmentNames", func(t *testing.T) {
		key, _, err := cloud.NewKey(account, server.URL)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "key.json")
		if err := os.WriteFile(file, key, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
		l, err := New(t.Context(), ofThePod)
		if err != nil {
			t.Fatal(err)
		}
		mustList(t, l, 0)
	})
}

func field(t *testing.T, key []byte, name string) string {
	t.Helper()
	all := map[string]string{}
	if err := json.Unmarshal(key, &all); err != nil {
		t.Fatal(err)
	}
	return all[name]
}

func change(t *testing.T, key []byte, name, value string) []byte {
	t.Helper()
	all := map[string]string{}
	if err := json.Unmarshal(key, &all); err != nil {
		t.Fatal(err)
	}
	all[name] = value
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
