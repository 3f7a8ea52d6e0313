package openstack_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fake "github.com/drover-dev/drover/test/fakes/openstack"
	"github.com/drover-dev/drover/test/openstack/real"
	"github.com/drover-dev/drover/test/patience"
)

var record = flag.Bool("record", false, "record the answers of the OpenStack of make openstack")

// answersFile has the answers of a real OpenStack (Zed) to the calls, without what differs between two runs.
const answersFile = "testdata/answers.json"

// An answer to a call.
type answer struct {
	Name, Call string
	Status     int
	Body       any
}

// A bench is an OpenStack with a project that the calls are made in.
type bench struct {
	url, id, secret string
	// setQuota limits the servers of the project, and setFull takes all room for them.
	setQuota func(int)
	setFull  func(bool)
	// vars are the values of names in braces in paths and bodies of calls.
	vars map[string]string
	// step waits until a server that changes may have changed.
	client *http.Client
	token  string
}

// TestTheAnswersAreThoseOfARealOpenStack makes the calls that Drover makes, and others that the OpenStack refuses. An answer
// must have the status of the recorded one, an error also its text, and each field the type that it has there.
func TestTheAnswersAreThoseOfARealOpenStack(t *testing.T) {
	if *record {
		b := realBench(t)
		writeAnswers(t, b.answers(t))
		return
	}
	compare(t, readAnswers(t), fakeBench(t).answers(t))
}

// TestTheRecordedAnswersAreThoseOfARealOpenStack finds what another release of OpenStack answers differently.
func TestTheRecordedAnswersAreThoseOfARealOpenStack(t *testing.T) {
	if !real.IsThere() {
		t.Skip("make openstack runs it")
	}
	compare(t, readAnswers(t), realBench(t).answers(t))
}

func compare(t *testing.T, want, got []answer) {
	t.Helper()
	for i, w := range want {
		if i >= len(got) {
			t.Errorf("%s: no answer", w.Name)
			continue
		}
		g := got[i]
		if g.Name != w.Name || g.Call != w.Call || g.Status != w.Status {
			t.Errorf("%s: %s is %d, recorded is %s: %s is %d", g.Name, g.Call, g.Status, w.Name, w.Call, w.Status)
			continue
		}
		if w.Status >= http.StatusBadRequest {
			if diff := cmp.Diff(w.Body, g.Body); diff != "" {
				t.Errorf("%s: -recorded +got:\n%s", w.Name, diff)
			}
			continue
		}
		wantShape, gotShape := shapeOf(w.Body), shapeOf(g.Body)
		for _, path := range slices.Sorted(maps.Keys(gotShape)) {
			if !slices.Contains(wantShape[path], gotShape[path][0]) {
				t.Errorf("%s: %s is %s, recorded %v", w.Name, path, gotShape[path], wantShape[path])
			}
		}
		for _, path := range slices.Sorted(maps.Keys(wantShape)) {
			if _, ok := gotShape[path]; !ok && !isUnused(path) {
				t.Errorf("%s: has no %s, recorded %v", w.Name, path, wantShape[path])
			}
		}
	}
}

func fakeBench(t *testing.T) *bench {
	t.Helper()
	var cloud *fake.Cloud
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { cloud.ServeHTTP(w, r) }))
	cloud = fake.New(fake.Options{URL: "http://" + s.Listener.Addr().String(), Projects: map[string]string{"member": "p"}, ServerLimit: 1})
	s.Start()
	t.Cleanup(s.Close)
	return &bench{
		url: s.URL, id: "member", secret: "secret-of-member", client: s.Client(),
		setQuota: func(int) {}, setFull: func(full bool) { cloud.SetProjectFull("p", full) },
		vars: map[string]string{"network": fake.NetworkID, "subnet": fake.SubnetID, "public": fake.PublicNetworkID, "image": fake.ImageID, "flavor": fake.FlavorID, "group": fake.GroupID, "elsewhere": "192.0.2.7", "storage": fake.StorageNetworkID},
	}
}

func realBench(t *testing.T) *bench {
	t.Helper()
	if !real.IsThere() {
		t.Fatal("there is no OpenStack: make openstack RECORD=1")
	}
	ctx := context.Background()
	c, err := real.Open(ctx)
	must(t, err)
	t.Cleanup(c.Close)
	p, err := c.NewProject(ctx, fmt.Sprintf("answers-%d", os.Getpid()))
	must(t, err)
	flavor, err := c.FlavorID(ctx)
	must(t, err)
	storage, err := c.AddNetwork(ctx, p, fmt.Sprintf("storage-%d", os.Getpid()), "10.2.0.0/16")
	must(t, err)
	return &bench{
		url: c.URL, id: p.Member.ID, secret: p.Member.Secret, client: http.DefaultClient,
		setQuota: func(n int) { must(t, c.SetQuota(ctx, p, n)) }, setFull: func(full bool) { must(t, c.SetFull(ctx, p, full)) },
		vars: map[string]string{"network": p.NetworkID, "subnet": p.SubnetID, "public": c.PublicID, "image": c.ImageID, "flavor": flavor, "group": p.GroupID, "elsewhere": "192.0.2.7", "storage": storage},
	}
}

const nobody = "99999999-0000-4000-8000-000000000009"

// answers makes the calls.
func (b *bench) answers(t *testing.T) []answer {
	t.Helper()
	var out []answer
	do := func(name, method, path, body string) map[string]any {
		t.Helper()
		a, raw := b.call(t, name, method, path, body)
		out = append(out, a)
		if strings.HasSuffix(name, " is created") && a.Status >= http.StatusBadRequest {
			t.Fatalf("%s: %d %v, after %+v", name, a.Status, a.Body, out)
		}
		return raw
	}
	// until repeats a call until its answer has the text, and keeps the last answer.
	until := func(name, path, status string) {
		t.Helper()
		patience.Eventually(t, func(context.Context) string {
			a, raw := b.call(t, name, http.MethodGet, path, "")
			server, _ := raw["server"].(map[string]any)
			if (status == "" && a.Status == http.StatusNotFound) || (server != nil && server["status"] == status) {
				out = append(out, a)
				return ""
			}
			return fmt.Sprintf("%s is %d %v, want %s", path, a.Status, server["status"], status)
		})
	}
	credential := `{"auth": {"identity": {"methods": ["application_credential"], "application_credential": {"id": "` + b.id + `", "secret": "%s"}}}}`
	do("a wrong secret", "POST", "/identity/v3/auth/tokens", fmt.Sprintf(credential, "wrong"))
	do("a login", "POST", "/identity/v3/auth/tokens", fmt.Sprintf(credential, b.secret))
	right := b.token
	b.token = "of-nobody"
	do("a call with a wrong token", "GET", "/compute/v2.1/servers/detail", "")
	do("a call of the network with a wrong token", "GET", "/network/v2.0/ports", "")
	b.token = right

	do("flavors", "GET", "/compute/v2.1/flavors/detail", "")
	do("a flavor", "GET", "/compute/v2.1/flavors/{flavor}", "")
	do("an unknown flavor", "GET", "/compute/v2.1/flavors/"+nobody, "")
	do("images by name", "GET", "/image/v2/images?name="+fake.Image, "")
	do("images by an unknown name", "GET", "/image/v2/images?name=none", "")
	do("an image", "GET", "/image/v2/images/{image}", "")
	do("networks by name", "GET", "/network/v2.0/networks?name="+fake.Network, "")

	port := `{"port": {"name": "p1", "description": "%s", "network_id": "%s", "fixed_ips": [%s], "security_groups": ["%s"], "allowed_address_pairs": [{"ip_address": "%s"}], "admin_state_up": true}}`
	made := do("a port is created", "POST", "/network/v2.0/ports", fmt.Sprintf(port, "drover a b c/d", "{network}", `{"subnet_id": "{subnet}"}`, "{group}", "10.244.0.0/16"))
	b.vars["port"] = idOf(made, "port")
	do("the port", "GET", "/network/v2.0/ports/{port}", "")
	do("ports by description", "GET", "/network/v2.0/ports?name=p1&description=drover+a+b+c%2Fd", "")
	do("ports by another description", "GET", "/network/v2.0/ports?description=drover", "")
	do("tags of a port", "PUT", "/network/v2.0/ports/{port}/tags", `{"tags": ["a", "b"]}`)
	do("an unknown port", "GET", "/network/v2.0/ports/"+nobody, "")
	do("a port in an unknown network", "POST", "/network/v2.0/ports", fmt.Sprintf(port, "", nobody, "", "{group}", "10.244.0.0/16"))
	do("a port in an unknown subnet", "POST", "/network/v2.0/ports", fmt.Sprintf(port, "", "{network}", `{"subnet_id": "`+nobody+`"}`, "{group}", "10.244.0.0/16"))
	do("a port with an address of no subnet", "POST", "/network/v2.0/ports", fmt.Sprintf(port, "", "{network}", `{"ip_address": "{elsewhere}"}`, "{group}", "10.244.0.0/16"))
	do("a port with an address of another subnet", "POST", "/network/v2.0/ports", fmt.Sprintf(port, "", "{network}", `{"subnet_id": "{subnet}", "ip_address": "{elsewhere}"}`, "{group}", "10.244.0.0/16"))
	do("a port with an unknown security group", "POST", "/network/v2.0/ports", fmt.Sprintf(port, "", "{network}", "", nobody, "10.244.0.0/16"))
	do("a port with an address pair that is none", "POST", "/network/v2.0/ports", fmt.Sprintf(port, "", "{network}", "", "{group}", "nowhere"))
	do("a port with a long description", "POST", "/network/v2.0/ports", fmt.Sprintf(port, strings.Repeat("d", 256), "{network}", "", "{group}", "10.244.0.0/16"))
	do("a port without security that has groups", "POST", "/network/v2.0/ports", `{"port": {"network_id": "{network}", "port_security_enabled": false, "security_groups": ["{group}"]}}`)
	do("a port without security that has pairs", "POST", "/network/v2.0/ports", `{"port": {"network_id": "{network}", "port_security_enabled": false, "security_groups": [], "allowed_address_pairs": [{"ip_address": "10.244.0.0/16"}]}}`)
	do("a port for a host", "POST", "/network/v2.0/ports", `{"port": {"network_id": "{network}", "binding:host_id": "openstack"}}`)

	floating := `{"floatingip": {"description": "%s", "floating_network_id": "%s", "port_id": "%s"}}`
	made = do("a floating IP is created", "POST", "/network/v2.0/floatingips", fmt.Sprintf(floating, "drover a b c/d", "{public}", "{port}"))
	b.vars["floatingip"] = idOf(made, "floatingip")
	do("the floating IP", "GET", "/network/v2.0/floatingips/{floatingip}", "")
	do("floating IPs by description", "GET", "/network/v2.0/floatingips?description=drover+a+b+c%2Fd", "")
	do("tags of a floating IP", "PUT", "/network/v2.0/floatingips/{floatingip}/tags", `{"tags": ["a", "b"]}`)
	do("an unknown floating IP", "GET", "/network/v2.0/floatingips/"+nobody, "")
	do("a floating IP of an unknown network", "POST", "/network/v2.0/floatingips", fmt.Sprintf(floating, "", nobody, "{port}"))
	do("a floating IP of a network that is not external", "POST", "/network/v2.0/floatingips", fmt.Sprintf(floating, "", "{network}", "{port}"))
	do("a floating IP for an unknown port", "POST", "/network/v2.0/floatingips", fmt.Sprintf(floating, "", "{public}", nobody))
	do("a second floating IP for a port", "POST", "/network/v2.0/floatingips", fmt.Sprintf(floating, "", "{public}", "{port}"))
	made = do("a port in a network without a router", "POST", "/network/v2.0/ports", `{"port": {"name": "p2", "network_id": "{storage}"}}`)
	b.vars["stored"] = idOf(made, "port")
	do("a floating IP for a port that the external network does not reach", "POST", "/network/v2.0/floatingips", fmt.Sprintf(floating, "", "{public}", "{stored}"))
	do("the port is deleted", "DELETE", "/network/v2.0/ports/{stored}", "")

	userData := base64.StdEncoding.EncodeToString([]byte("#cloud-config\n"))
	server := `{"server": {"name": "s1", "flavorRef": "%s", "imageRef": "%s", "availability_zone": "%s", "user_data": "%s", "metadata": {"k": "%s"}, "networks": [%s]}}`
	own := `{"port": "{port}"}`
	b.setQuota(1)
	do("a server of an unknown flavor", "POST", "/compute/v2.1/servers", fmt.Sprintf(server, nobody, "{image}", "nova", userData, "v", own))
	do("a server of an unknown image", "POST", "/compute/v2.1/servers", fmt.Sprintf(server, "{flavor}", nobody, "nova", userData, "v", own))
	do("a server in an unknown zone", "POST", "/compute/v2.1/servers", fmt.Sprintf(server, "{flavor}", "{image}", "mars", userData, "v", own))
	do("a server with long metadata", "POST", "/compute/v2.1/servers", fmt.Sprintf(server, "{flavor}", "{image}", "nova", userData, strings.Repeat("v", 256), own))
	do("a server with user data that is no base64", "POST", "/compute/v2.1/servers", fmt.Sprintf(server, "{flavor}", "{image}", "nova", "a", "v", own))
	do("a server in an unknown network", "POST", "/compute/v2.1/servers", fmt.Sprintf(server, "{flavor}", "{image}", "nova", userData, "v", `{"uuid": "`+nobody+`"}`))
	do("a server with an unknown port", "POST", "/compute/v2.1/servers", fmt.Sprintf(server, "{flavor}", "{image}", "nova", userData, "v", `{"port": "`+nobody+`"}`))
	made = do("a server is created", "POST", "/compute/v2.1/servers", fmt.Sprintf(server, "{flavor}", "{image}", "nova", userData, "v", own))
	b.vars["server"] = idOf(made, "server")
	until("the server", "/compute/v2.1/servers/{server}", "ACTIVE")
	do("its port", "GET", "/network/v2.0/ports/{port}", "")
	do("a server beyond the quota", "POST", "/compute/v2.1/servers", fmt.Sprintf(server, "{flavor}", "{image}", "nova", userData, "v", `{"uuid": "{network}"}`))
	do("servers by name", "GET", "/compute/v2.1/servers/detail?name=%5Es1%24", "")
	do("servers by a part of the name", "GET", "/compute/v2.1/servers/detail?name=s", "")
	do("servers by another name", "GET", "/compute/v2.1/servers/detail?name=%5Es%24", "")
	do("servers by a name that is no expression", "GET", "/compute/v2.1/servers/detail?name=%5B", "")
	do("the console", "POST", "/compute/v2.1/servers/{server}/action", `{"os-getConsoleOutput": {"length": 2}}`)
	do("a reboot of an unknown kind", "POST", "/compute/v2.1/servers/{server}/action", `{"reboot": {"type": "WARM"}}`)
	do("an unknown action", "POST", "/compute/v2.1/servers/{server}/action", `{"repair": {}}`)
	do("a soft reboot", "POST", "/compute/v2.1/servers/{server}/action", `{"reboot": {"type": "SOFT"}}`)
	until("the server after a soft reboot", "/compute/v2.1/servers/{server}", "ACTIVE")
	do("a hard reboot", "POST", "/compute/v2.1/servers/{server}/action", `{"reboot": {"type": "HARD"}}`)
	until("the server after a hard reboot", "/compute/v2.1/servers/{server}", "ACTIVE")
	do("a reboot of an unknown server", "POST", "/compute/v2.1/servers/"+nobody+"/action", `{"reboot": {"type": "SOFT"}}`)
	do("the server is deleted", "DELETE", "/compute/v2.1/servers/{server}", "")
	until("the server that is gone", "/compute/v2.1/servers/{server}", "")
	do("the server is deleted again", "DELETE", "/compute/v2.1/servers/{server}", "")
	do("its port stays", "GET", "/network/v2.0/ports/{port}", "")
	b.setFull(true)
	made = do("a server without a host is created", "POST", "/compute/v2.1/servers", fmt.Sprintf(server, "{flavor}", "{image}", "nova", userData, "v", `{"uuid": "{network}"}`))
	b.vars["server"] = idOf(made, "server")
	until("the server without a host", "/compute/v2.1/servers/{server}", "ERROR")
	do("its console", "POST", "/compute/v2.1/servers/{server}/action", `{"os-getConsoleOutput": {"length": 2}}`)
	do("its soft reboot", "POST", "/compute/v2.1/servers/{server}/action", `{"reboot": {"type": "SOFT"}}`)
	do("its hard reboot", "POST", "/compute/v2.1/servers/{server}/action", `{"reboot": {"type": "HARD"}}`)
	do("the server without a host is deleted", "DELETE", "/compute/v2.1/servers/{server}", "")
	until("the server without a host that is gone", "/compute/v2.1/servers/{server}", "")
	b.setFull(false)
	do("the floating IP is deleted", "DELETE", "/network/v2.0/floatingips/{floatingip}", "")
	do("the floating IP is deleted again", "DELETE", "/network/v2.0/floatingips/{floatingip}", "")
	do("the port is deleted", "DELETE", "/network/v2.0/ports/{port}", "")
	do("the port is deleted again", "DELETE", "/network/v2.0/ports/{port}", "")
	return out
}

// call makes a call. It returns the answer without what differs between two runs, and as it is.
func (b *bench) call(t *testing.T, name, method, path, body string) (answer, map[string]any) {
	t.Helper()
	fill := path
	for k, v := range b.vars {
		fill, body = strings.ReplaceAll(fill, "{"+k+"}", v), strings.ReplaceAll(body, "{"+k+"}", v)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, b.url+fill, bytes.NewReader([]byte(body)))
	must(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if b.token != "" {
		r.Header.Set("X-Auth-Token", b.token)
	}
	resp, err := b.client.Do(r)
	must(t, err)
	raw, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	if token := resp.Header.Get("X-Subject-Token"); token != "" {
		b.token = token
	}
	a := answer{Name: name, Call: method + " " + strings.ReplaceAll(path, nobody, "{unknown}"), Status: resp.StatusCode}
	var parsed any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &parsed); err != nil {
			parsed = string(raw)
		}
	}
	a.Body = settled(parsed)
	object, _ := parsed.(map[string]any)
	return a, object
}

func idOf(body map[string]any, kind string) string {
	of, _ := body[kind].(map[string]any)
	id, _ := of["id"].(string)
	return id
}

// changing values differ between two runs; each has a placeholder.
var changing = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b|\b[0-9a-f]{56}\b`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?`), "TIME"},
	{regexp.MustCompile(`([0-9a-f]{2}:){5}[0-9a-f]{2}`), "MAC"},
	{regexp.MustCompile(`http://[0-9.]+:\d+`), "URL"},
	{regexp.MustCompile(`\b(10|203)(\.\d+){3}\b(/\d+)?`), "IP"},
	{regexp.MustCompile(`2001:db8:[0-9a-f:]+`), "IP"},
	{regexp.MustCompile(`\b[A-Z2-7]{26}\b`), "NAME"},
	{regexp.MustCompile(`req-UUID|answers-\d+|storage-\d+`), "NAME"},
}

// settled returns a value without the values that differ between two runs.
func settled(v any) any {
	switch v := v.(type) {
	case string:
		for _, c := range changing {
			v = c.form.ReplaceAllString(v, c.as)
		}
		return v
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, settled(e))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = settled(e)
		}
		if out["adminPass"] != nil {
			out["adminPass"] = "PASSWORD"
		}
		return out
	}
	return v
}

// shapeOf returns the types of a value by the paths of its fields. Elements of lists have the path of the first.
func shapeOf(v any) map[string][]string {
	out := map[string][]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		kind := fmt.Sprintf("%T", v)
		if !slices.Contains(out[path], kind) {
			out[path] = append(out[path], kind)
		}
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(path+"[]", e)
			}
		case map[string]any:
			for k, e := range v {
				walk(path+"."+k, e)
			}
		}
	}
	walk("", v)
	return out
}

// unused are the fields of a real OpenStack that nothing reads and that the fake therefore lacks: links, of which the pages of
// lists have others, what the clients of the images, networks and flavors ignore, and details of tokens.
var unused = regexp.MustCompile(`[._]links(\[\].*)?$|\.revision_number$|\.port_details(\..*)?$|^\.(first|schema|self)$` +
	`|^(\.images\[\])?\.(checksum|container_format|created_at|disk_format|file|id|min_disk|min_ram|os_hash_algo|os_hash_value|os_hidden|owner|protected|schema|self|size|stores|tags|updated_at|virtual_size)$` +
	`|^\.networks\[\]\.|^\.flavors?(\[\])?\.|^\.token\.(user|roles|project\.domain|is_domain|audit_ids|application_credential|catalog\[\]\.endpoints\[\]\.name)`)

func isUnused(path string) bool { return unused.MatchString(path) }

func readAnswers(t *testing.T) []answer {
	t.Helper()
	b, err := os.ReadFile(answersFile)
	must(t, err)
	var out []answer
	must(t, json.Unmarshal(b, &out))
	return out
}

func writeAnswers(t *testing.T, all []answer) {
	t.Helper()
	b, err := json.MarshalIndent(all, "", " ")
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(answersFile), 0o755))
	must(t, os.WriteFile(answersFile, append(b, '\n'), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
