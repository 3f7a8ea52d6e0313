package userdata

import (
	_ "embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// lastMinorOfContainerd1 is the last minor version of Kubernetes whose kubelet works with
// containerd 1.
const lastMinorOfContainerd1 = 35

const (
	pathContainerdConfig = "/etc/containerd/config.toml"
	containerdUnitName   = "containerd.service"
)

// releaseFor returns the first release of containerd that supports a kubelet.
func releaseFor(releases []machinev1alpha1.ContainerdRelease, kubelet string, path *field.Path) (machinev1alpha1.ContainerdRelease, *field.Error) {
	v, err := version.ParseSemantic(kubelet)
	if err != nil {
		return machinev1alpha1.ContainerdRelease{}, field.Invalid(path, kubelet, "must be a version like v1.35.4")
	}
	majors := []string{}
	for _, r := range releases {
		last := lastMinorOf(r)
		if last < 0 || int(v.Minor()) <= last {
			return r, nil
		}
		majors = append(majors, fmt.Sprintf("%d (kubelets up to 1.%d)", r.Major, last))
	}
	return machinev1alpha1.ContainerdRelease{}, field.Invalid(path, kubelet, fmt.Sprintf("no containerd of the profile serves this kubelet; it has containerd %s", strings.Join(majors, " and ")))
}

// lastMinorOf returns the last minor version of Kubernetes that a release supports, negative for all.
func lastMinorOf(r machinev1alpha1.ContainerdRelease) int {
	last := -1
	if r.Major == 1 {
		last = lastMinorOfContainerd1
	}
	if r.MaxKubeletMinor != nil && (last < 0 || int(*r.MaxKubeletMinor) < last) {
		last = int(*r.MaxKubeletMinor)
	}
	return last
}

// containerdConfig is for releases of the major version, since containerd 2 has another format. If the sandbox
// image is empty, it is containerd's own.
func containerdConfig(major int32, sandbox string) string {
	config, table := containerd2Config, "[plugins.'io.containerd.cri.v1.images'.pinned_images]\n  sandbox = %q\n"
	if major == 1 {
		config, table = containerd1Config, "[plugins.\"io.containerd.grpc.v1.cri\"]\n  sandbox_image = %q\n"
	}
	if sandbox == "" {
		return config
	}
	// The table of containerd 1 is a parent of the remaining ones, and so comes first.
	version, rest, _ := strings.Cut(config, "\n\n")
	return version + "\n\n" + fmt.Sprintf(table, sandbox) + "\n" + rest
}

// The kubelet's cgroup driver is systemd, and no package of containerd sets that.
const containerd1Config = `version = 2

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/opt/cni/bin"
  conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "/etc/containerd/certs.d"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = true
`

const containerd2Config = `version = 3

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/opt/cni/bin"]
  conf_dir = "/etc/cni/net.d"

[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "/etc/containerd/certs.d"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = true
`

// containerdUnit is for a containerd that was downloaded.
const containerdUnit = `[Unit]
Description=containerd container runtime
Documentation=https://containerd.io
After=network.target local-fs.target

[Service]
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
`

// Scripts that install and start containerd.
var (
	//go:embed scripts/install-containerd.sh
	installContainerd string
	//go:embed scripts/start-containerd.sh
	startContainerd string
)
