package openstack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// reboot requests a reboot of a server. Nova refuses a soft reboot of a server that is not ACTIVE. A hard reboot also starts
// one that is SHUTOFF, and takes the place of a soft reboot in progress.
func (p *projects) reboot(ctx context.Context, mg resource.ModernManaged, id string, mode machinev1alpha1.RebootMode) error {
	project, err := p.of(ctx, mg)
	if err != nil {
		return err
	}
	c, err := project.compute()
	if err != nil {
		return err
	}
	method := servers.SoftReboot
	if mode == machinev1alpha1.RebootHard {
		method = servers.HardReboot
	}
	if err := servers.Reboot(ctx, c, id, servers.RebootOpts{Type: method}).ExtractErr(); err != nil {
		return fmt.Errorf("cannot reboot the instance: %w", err)
	}
	return nil
}

// showRebooting gives a server that is being rebooted the status ACTIVE. Nova reports REBOOT or HARD_REBOOT while an active
// server is rebooted. The Terraform provider fails for both, so that the instance could not be observed until the reboot
// ends, and no hard reboot could be requested meanwhile.
func showRebooting(resp *http.Response) error {
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return err
	}
	b = asActive(b)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	if resp.Header.Get("Content-Length") != "" {
		resp.Header.Set("Content-Length", strconv.Itoa(len(b)))
	}
	return nil
}

// asActive returns the response about a server, with the status ACTIVE if the server is being rebooted.
func asActive(body []byte) []byte {
	var answer, server map[string]json.RawMessage
	if json.Unmarshal(body, &answer) != nil || json.Unmarshal(answer["server"], &server) != nil {
		return body
	}
	switch string(server["status"]) {
	case `"REBOOT"`, `"HARD_REBOOT"`:
	default:
		return body
	}
	server["status"] = json.RawMessage(`"ACTIVE"`)
	var err error
	if answer["server"], err = json.Marshal(server); err != nil {
		return body
	}
	changed, err := json.Marshal(answer)
	if err != nil {
		return body
	}
	return changed
}
