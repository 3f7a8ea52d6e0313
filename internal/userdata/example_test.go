package userdata_test

import (
	"fmt"
	"strings"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/osprofile"
	"github.com/drover-dev/drover/internal/userdata"
)

// debian is the input of a VM with the built-in profile of Debian 12.
var debian = userdata.Input{
	Hostname:    "workers-x7k2p",
	Version:     "v1.35.4",
	DownloadURL: machinev1alpha1.DefaultKubeletDownloadURL,
	Profile:     osprofile.BuiltIn("debian-12-v1"),
}

// A document has the files that a VM gets at its first boot, and the steps by which it then becomes a
// Node. The step packages is that of the profile.
func ExampleNew() {
	document, err := userdata.New(debian)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, file := range document.Files {
		fmt.Println("file", file.Path)
	}
	for _, step := range document.Steps {
		fmt.Println("step", step.Name)
	}
	// Output:
	// file /etc/kubernetes/bootstrap-kubelet.conf
	// file /etc/kubernetes/pki/ca.crt
	// file /var/lib/kubelet/config.yaml
	// file /etc/default/kubelet
	// file /etc/modules-load.d/drover.conf
	// file /etc/sysctl.d/90-drover.conf
	// file /etc/systemd/journald.conf.d/drover.conf
	// file /etc/containerd/config.toml
	// file /etc/apt/apt.conf.d/60-drover
	// step prepare
	// step packages
	// step start-containerd
	// step install-kubelet
	// step start-kubelet
}

// An encoded document is a template. The step bootstrap of a Machine's pipeline renders it without
// any secret, and the Machine's controller fills in the values that only it knows.
func ExampleFilling_Fill() {
	document, err := userdata.New(debian)
	if err != nil {
		fmt.Println(err)
		return
	}
	template, err := document.Encode(machinev1alpha1.CloudInit)
	if err != nil {
		fmt.Println(err)
		return
	}
	filling := userdata.Filling{Token: "abcdef.0123456789abcdef", Server: "https://api.example.org:6443", CA: []byte("the CA")}
	userData, err := filling.Fill(string(template), userdata.Form{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, document := range []string{string(template), string(userData)} {
		for line := range strings.Lines(document) {
			if strings.Contains(line, " server: ") || strings.Contains(line, " token: ") {
				fmt.Println(strings.TrimSpace(line))
			}
		}
	}
	// Output:
	// server: "$(server)"
	// token: "$(token)"
	// server: "https://api.example.org:6443"
	// token: "abcdef.0123456789abcdef"
}
