package schematest

import (
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	alibaba "github.com/drover-dev/drover/apis/alibaba/v1alpha1"
	aws "github.com/drover-dev/drover/apis/aws/v1alpha1"
	azure "github.com/drover-dev/drover/apis/azure/v1alpha1"
	cluster "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	digitalocean "github.com/drover-dev/drover/apis/digitalocean/v1alpha1"
	gcp "github.com/drover-dev/drover/apis/gcp/v1alpha1"
	hcloud "github.com/drover-dev/drover/apis/hcloud/v1alpha1"
	kubevirt "github.com/drover-dev/drover/apis/kubevirt/v1alpha1"
	local "github.com/drover-dev/drover/apis/local/v1alpha1"
	machine "github.com/drover-dev/drover/apis/machine/v1alpha1"
	metalstack "github.com/drover-dev/drover/apis/metalstack/v1alpha1"
	nutanix "github.com/drover-dev/drover/apis/nutanix/v1alpha1"
	openstack "github.com/drover-dev/drover/apis/openstack/v1alpha1"
	proxmox "github.com/drover-dev/drover/apis/proxmox/v1alpha1"
	terraform "github.com/drover-dev/drover/apis/terraform/v1alpha1"
	vcd "github.com/drover-dev/drover/apis/vcd/v1alpha1"
	vsphere "github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	yandex "github.com/drover-dev/drover/apis/yandex/v1alpha1"
)

// Scheme returns a scheme of all kinds of Drover.
func Scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		alibaba.AddToScheme,
		aws.AddToScheme,
		azure.AddToScheme,
		cluster.AddToScheme,
		digitalocean.AddToScheme,
		gcp.AddToScheme,
		hcloud.AddToScheme,
		kubevirt.AddToScheme,
		local.AddToScheme,
		machine.AddToScheme,
		metalstack.AddToScheme,
		nutanix.AddToScheme,
		openstack.AddToScheme,
		proxmox.AddToScheme,
		terraform.AddToScheme,
		vcd.AddToScheme,
		vsphere.AddToScheme,
		yandex.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

var (
	allLeaves []Leaf
	readAll   sync.Mutex
)

// AllLeaves returns the fields of all kinds that an API server gets from Drover. They are read once. The package of the
// test must be two folders below the root.
func AllLeaves(t *testing.T) []Leaf {
	t.Helper()
	readAll.Lock()
	defer readAll.Unlock()
	if len(allLeaves) > 0 {
		return allLeaves
	}
	for _, pattern := range []string{"package/*/crds/*.yaml", "apis/machine/xrds/*.yaml"} {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, error %v", pattern, err)
		}
		for _, file := range files {
			allLeaves = append(allLeaves, Leaves(t, file)...)
		}
	}
	return allLeaves
}
