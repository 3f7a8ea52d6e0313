package openstack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/reboot"
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
	err = servers.Reboot(ctx, c, id, servers.RebootOpts{Type: method}).ExtractErr()
	if err == nil {
		return nil
	}
	refused := fmt.Errorf("cannot reboot the instance: %w", err)
	if gophercloud.ResponseCodeIs(err, http.StatusConflict) && strings.Contains(err.Error(), inTask) {
		return reboot.Busy(refused)
	}
	return refused
}

// inTask is a part of Nova's refusal while something is done with the instance, such as a snapshot. It differs from that of an
// instance in another state, which ends with an action of a user only ("while it is in vm_state stopped").
const inTask = "while it is in task_state"

// shownAs are the statuses of a server, in the notation of Nova, for which the Terraform provider fails, and what it is shown
// instead. Otherwise the instance could be neither observed, nor rebooted, nor deleted while it has the status. An instance
// that is not ACTIVE is not Ready, and the message of the condition has its real status: see faults.
var shownAs = map[string]string{
	// The instance runs, or is about to: its password is reset, or it was resized and waits for a confirmation.
	"REBOOT": active, "HARD_REBOOT": active, "PASSWORD": active, "VERIFY_RESIZE": active,
	// The instance does not run its own disk, or does not run at all.
	"SUSPENDED": shutoff, "RESCUE": shutoff, "REBUILD": shutoff, "RESIZE": shutoff, "REVERT_RESIZE": shutoff,
	// Nova has no status for the state that it recorded, or does not reach the cell of the instance.
	"UNKNOWN": shutoff,
}

// isDeletedStatus reports whether a status is that of a server which is gone, although Nova still shows it: to
// administrators, or until it is reclaimed.
func isDeletedStatus(status string) bool { return status == "DELETED" || status == "SOFT_DELETED" }

// asGone makes the response about a server that is gone the one of Nova about a server that does not exist, which the
// Terraform provider understands. An instance that was deleted softly would otherwise keep its Machine.
func asGone(resp *http.Response, id string) *http.Response {
	_ = resp.Body.Close()
	gone := fmt.Sprintf(`{"itemNotFound": {"code": 404, "message": "Instance %s could not be found."}}`, id)
	out := *resp
	out.StatusCode, out.Status = http.StatusNotFound, "404 Not Found"
	out.Header = resp.Header.Clone()
	out.Header.Set("Content-Length", strconv.Itoa(len(gone)))
	out.Body, out.ContentLength = io.NopCloser(strings.NewReader(gone)), int64(len(gone))
	return &out
}

// Statuses that the Terraform provider can read, also while it waits for the end of a deletion.
const active, shutoff = "ACTIVE", "SHUTOFF"

// showReadable gives a server a status that the Terraform provider can read.
func showReadable(resp *http.Response) error {
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return err
	}
	b = asReadable(b)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	if resp.Header.Get("Content-Length") != "" {
		resp.Header.Set("Content-Length", strconv.Itoa(len(b)))
	}
	return nil
}

// asReadable returns the response about a server, with a status of shownAs.
func asReadable(body []byte) []byte {
	var answer, server map[string]json.RawMessage
	if json.Unmarshal(body, &answer) != nil || json.Unmarshal(answer["server"], &server) != nil {
		return body
	}
	shown, ok := shownAs[strings.Trim(string(server["status"]), `"`)]
	if !ok {
		return body
	}
	server["status"] = json.RawMessage(strconv.Quote(shown))
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
