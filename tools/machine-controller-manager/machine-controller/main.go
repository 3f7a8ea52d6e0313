// Command machine-controller is the machine controller of machine-controller-manager, unmodified, with a driver for a cloud that a test
// plays. The test serves the driver's calls at the URL in the environment variable CLOUD: POST /create, /status, /delete and /list, each
// with the name and the providerID of a Machine, and a status of 404 for a VM that does not exist.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	_ "github.com/gardener/machine-controller-manager/pkg/util/client/metrics/prometheus" // As the programs of all drivers do.
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"github.com/spf13/pflag"
	"k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
)

func main() {
	s := options.NewMCServer()
	s.AddFlags(pflag.CommandLine)
	flag.InitFlags()
	logs.InitLogs()
	err := app.Run(s, cloud(os.Getenv("CLOUD"))) // It never ends well.
	logs.FlushLogs()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A cloud is the URL at which a test plays a cloud.
type cloud string

// A vm is the body of requests and answers.
type vm struct {
	Name       string            `json:"name,omitempty"`
	ProviderID string            `json:"providerID,omitempty"`
	Node       string            `json:"node,omitempty"`
	All        map[string]string `json:"all,omitempty"`
}

// call returns an error with a code of the drivers' contract.
func (c cloud) call(ctx context.Context, path string, m *v1alpha1.Machine) (vm, error) {
	in, out := vm{}, vm{}
	if m != nil {
		in = vm{Name: m.Name, ProviderID: m.Spec.ProviderID}
	}
	b, err := json.Marshal(in)
	if err != nil {
		return out, status.Error(codes.Internal, err.Error())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(c)+path, bytes.NewReader(b))
	if err != nil {
		return out, status.Error(codes.Internal, err.Error())
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return out, status.Error(codes.Unavailable, err.Error())
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return out, status.Error(codes.NotFound, "no such VM")
	case resp.StatusCode != http.StatusOK:
		return out, status.Error(codes.Internal, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return out, status.Error(codes.Internal, err.Error())
	}
	return out, nil
}

func (c cloud) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	out, err := c.call(ctx, "/create", r.Machine)
	return &driver.CreateMachineResponse{ProviderID: out.ProviderID, NodeName: out.Node}, err
}

func (cloud) InitializeMachine(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return nil, status.Error(codes.Unimplemented, "not needed")
}

func (c cloud) DeleteMachine(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	_, err := c.call(ctx, "/delete", r.Machine)
	return &driver.DeleteMachineResponse{}, err
}

func (c cloud) GetMachineStatus(ctx context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	out, err := c.call(ctx, "/status", r.Machine)
	return &driver.GetMachineStatusResponse{ProviderID: out.ProviderID, NodeName: out.Node}, err
}

func (c cloud) ListMachines(ctx context.Context, _ *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	out, err := c.call(ctx, "/list", nil)
	return &driver.ListMachinesResponse{MachineList: out.All}, err
}

func (cloud) GetVolumeIDs(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return &driver.GetVolumeIDsResponse{}, nil
}
