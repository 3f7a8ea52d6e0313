// Package render tests each Composition with Crossplane's own renderer: the real reconciler, with
// the packaged function-drover, and without a control plane. Inputs and expected outputs are in
// testdata.
package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/drover-dev/drover/test/patience"
)

// envBin names the folder of the binaries. The Makefile sets it.
const envBin = "DROVER_BIN"

// Variables for all tests, set by TestMain.
var (
	// bin is the folder of the binaries.
	bin string
	// function is the address of function-drover.
	function string
	// schemas are the files with the schemas of the API server.
	schemas []string
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if bin = os.Getenv(envBin); bin == "" {
		fmt.Fprintf(os.Stderr, "%s must name the folder of the binaries: run the tests with make\n", envBin)
		return 1
	}
	dir, err := os.MkdirTemp("", "drover-render-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if schemas, err = publish(dir,
		"package/provider-hcloud/crds/hcloud.drover.dev_virtualmachines.yaml",
		"package/provider-local/crds/local.drover.dev_virtualmachines.yaml",
		"package/provider-openstack/crds/openstack.drover.dev_floatingips.yaml",
		"package/provider-openstack/crds/openstack.drover.dev_ports.yaml",
		"package/provider-openstack/crds/openstack.drover.dev_virtualmachines.yaml",
		"package/provider-vsphere/crds/vsphere.drover.dev_virtualmachines.yaml",
		"test/providers/crds/compute.azure.m.upbound.io_linuxvirtualmachines.yaml",
		"test/providers/crds/compute.azure.m.upbound.io_manageddisks.yaml",
		"test/providers/crds/compute.azure.m.upbound.io_virtualmachinedatadiskattachments.yaml",
		"test/providers/crds/network.azure.m.upbound.io_networkinterfaces.yaml",
	); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var stop func()
	if function, stop, err = serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	return m.Run()
}

// serve starts function-drover, and returns its address and a function that stops it.
func serve() (string, func(), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return "", nil, err
	}

	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, "function-drover"), "--insecure", "--address", address, "--metrics-address", "")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop := func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	}

	err = wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, patience.Limit(), true, func(context.Context) (bool, error) {
		select {
		case err := <-ended:
			ended <- err
			return false, errors.Join(errors.New("it ended"), err)
		default:
		}
		c, err := net.Dial("tcp", address)
		if err != nil {
			return false, nil
		}
		return true, c.Close()
	})
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("function-drover does not listen at %s: %w\n%s", address, err, log.String())
	}
	return address, stop, nil
}
