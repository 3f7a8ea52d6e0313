package guest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// header of cloud-init's documents.
	header = "#cloud-config\n"
	// script of Drover's user data that requests the VM's providerID from the cloud, and adds it
	// to the file that a variable of its environment names.
	script         = "-provider-id"
	configVariable = "KUBELET_CONFIG"
	// environment is the end of the name of the file with the variables of all scripts.
	environment = ".env"
)

// runProviderID runs the script of the user data that adds the providerID to the kubelet's
// configuration, if there is one, with the cloud's metadata service. It returns the user data
// with the resulting configuration, because the guests of the local cloud run no shell.
func runProviderID(ctx context.Context, userData []byte, r Request) ([]byte, error) {
	if !bytes.HasPrefix(userData, []byte(header)) {
		return userData, nil
	}
	doc := map[string]any{}
	if err := yaml.Unmarshal(userData, &doc); err != nil {
		return nil, err
	}
	command, config := call(doc)
	if command == nil {
		return userData, nil
	}
	written, err := run(ctx, command["content"].(string), config["content"].(string), r)
	if err != nil {
		return nil, err
	}
	config["content"] = written
	out, err := yaml.Marshal(doc)
	return append([]byte(header), out...), err
}

// call finds the script and the kubelet's configuration in the files.
func call(doc map[string]any) (command, config map[string]any) {
	files := map[string]map[string]any{}
	configPath := ""
	list, _ := doc["write_files"].([]any)
	for _, f := range list {
		m, _ := f.(map[string]any)
		path, _ := m["path"].(string)
		content, ok := m["content"].(string)
		if !ok {
			continue
		}
		files[path] = m
		if strings.HasSuffix(path, script) {
			command = m
		}
		if strings.HasSuffix(path, environment) {
			_, rest, _ := strings.Cut(content, configVariable+`="`)
			configPath, _, _ = strings.Cut(rest, `"`)
		}
	}
	if command == nil || files[configPath] == nil {
		return nil, nil
	}
	return command, files[configPath]
}

// run the script like the VM: the host name is the VM's, and the metadata service answers all
// HTTP requests.
func run(ctx context.Context, command, config string, r Request) (string, error) {
	if _, err := exec.LookPath("curl"); err != nil {
		return "", fmt.Errorf("VMs ask their cloud with curl: %w", err)
	}
	dir, err := os.MkdirTemp("", "guest-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file, bin := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "hostname")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(bin, []byte("#!/bin/sh\necho '"+r.Name+"'\n"), 0o755); err != nil {
		return "", err
	}
	if r.SystemUUID != "" {
		dmidecode := "#!/bin/sh\n[ \"$*\" = \"-s system-uuid\" ] && echo '" + r.SystemUUID + "'\n"
		if err := os.WriteFile(filepath.Join(dir, "dmidecode"), []byte(dmidecode), 0o755); err != nil {
			return "", err
		}
	}
	if r.OVFEnvironment != "" {
		document := filepath.Join(dir, "ovf-env.xml")
		if err := os.WriteFile(document, []byte(r.OVFEnvironment), 0o600); err != nil {
			return "", err
		}
		vmtoolsd := "#!/bin/sh\n[ \"$*\" = \"--cmd info-get guestinfo.ovfEnv\" ] && cat '" + document + "'\n"
		if err := os.WriteFile(filepath.Join(dir, "vmtoolsd"), []byte(vmtoolsd), 0o755); err != nil {
			return "", err
		}
	}
	handler := r.Metadata
	if handler == nil {
		handler = http.NotFoundHandler()
	}
	var asked []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked = append(asked, req.Method+" "+req.URL.String())
		handler.ServeHTTP(w, req)
	}))
	defer service.Close()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	// One try is enough: the answers of the service do not change.
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "http_proxy=" + service.URL, "PAUSE=0", configVariable + "=" + file}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("the providerIDCommand of the Composition fails: %w: %s; it asked %s", err, out, strings.Join(compact(asked), ", "))
	}
	written, err := os.ReadFile(file)
	return string(written), err
}

// compact removes repeated requests.
func compact(asked []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, a := range asked {
		if !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}
