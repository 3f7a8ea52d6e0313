// Package metadata is the metadata service of a real VM: the NoCloud documents that cloud-init
// and Ignition read, and the VM's provider ID. It answers only on the VM's own network.
package metadata

import (
	"net/http"

	"sigs.k8s.io/yaml"
)

// A VM has the data that its metadata service serves.
type VM struct {
	ID       string
	Hostname string
	// Secret is a part of the path of the documents. Only the kernel's command line has it, because
	// user data holds a join token, and pods reach the network too.
	Secret   string
	UserData []byte
	// ProviderID that the VM's kubelet registers, empty if the VM must not know it.
	ProviderID string
}

// Path returns the path of the documents of a VM. It ends with a slash, because NoCloud appends
// names.
func Path(secret string) string { return "/nocloud/" + secret + "/" }

// ProviderIDPath returns the VM's provider ID, which is not secret.
const ProviderIDPath = "/v1/provider-id"

// Handler serves the metadata of one VM.
func Handler(vm VM) (http.Handler, error) {
	about, err := yaml.Marshal(map[string]string{"instance-id": vm.ID, "local-hostname": vm.Hostname})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for name, document := range map[string][]byte{"meta-data": about, "user-data": vm.UserData, "vendor-data": nil} {
		mux.Handle("GET "+Path(vm.Secret)+name, constant(document))
	}
	if vm.ProviderID != "" {
		mux.Handle("GET "+ProviderIDPath, constant([]byte(vm.ProviderID+"\n")))
	}
	return mux, nil
}

func constant(body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(body)
	})
}
