package hcloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/hcloud/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// placings is the number of groups that a creation tries: a project has 50 by default.
const placings = 60

// groupOwnerOf returns the owner of the placement groups of a VM, with an empty prefix if it has none.
func groupOwnerOf(mg resource.ModernManaged) groupOwner {
	vm, ok := mg.(*v1alpha1.VirtualMachine)
	if !ok {
		return groupOwner{}
	}
	spec := vm.Spec
	return groupOwner{
		installation: cmp.Or(spec.ForProvider.Labels[machinev1alpha1.TagInstallation], vm.Status.AtProvider.Labels[machinev1alpha1.TagInstallation]),
		prefix:       cmp.Or(ptr.Deref(spec.ForProvider.PlacementGroupPrefix, ""), ptr.Deref(spec.InitProvider.PlacementGroupPrefix, "")),
	}
}

// deleteEmptyGroups deletes the placement groups that are empty after the deletion of a server.
func (p *projects) deleteEmptyGroups(ctx context.Context, mg resource.ModernManaged) error {
	vm, ok := mg.(*v1alpha1.VirtualMachine)
	if !ok {
		return fmt.Errorf("%T is not a VirtualMachine", mg)
	}
	o := groupOwnerOf(vm)
	// An adopted server and an orphan have no prefix, and may be in a group that Drover created.
	isInGroup := vm.Spec.ForProvider.PlacementGroupID == nil && ptr.Deref(vm.Status.AtProvider.PlacementGroupID, 0) != 0
	if o.prefix == "" && !isInGroup {
		return nil
	}
	project, err := p.of(ctx, mg)
	if err != nil {
		return err
	}
	id, _ := strconv.ParseInt(meta.GetExternalName(vm), 10, 64) // 0 if no server was created.
	return project.groups.deleteEmpty(ctx, o.installation, id)
}

// placing adds a placement group to the call that creates a server. If Hetzner refuses the server because of the group,
// the call is repeated with another group: it had no effect. Only its last result is reported.
type placing struct {
	next   http.RoundTripper
	groups *placementGroups
	owner  groupOwner
}

// RoundTrip sends a request.
func (p placing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/servers") {
		return p.next.RoundTrip(req)
	}
	server := map[string]json.RawMessage{}
	err := json.NewDecoder(req.Body).Decode(&server)
	_ = req.Body.Close()
	if err != nil {
		// The content of the body is secret, and so may be the text of the error.
		return nil, errors.New("cannot read the request that creates a server")
	}
	after := 0
	for try := 1; ; try++ {
		place, err := p.groups.choose(req.Context(), p.owner, after)
		if err != nil {
			return nil, err
		}
		resp, problem, err := p.createIn(req, server, place)
		if err != nil || resp.StatusCode < http.StatusBadRequest || try == placings {
			return resp, err
		}
		after = p.groups.begun()
		if !p.isRefusedByGroup(req.Context(), resp.StatusCode, problem, place, after) {
			return resp, nil
		}
	}
}

// createIn sends the request with a group, and releases the place. It returns the response, and the error in it.
func (p placing) createIn(req *http.Request, server map[string]json.RawMessage, place place) (*http.Response, schema.Error, error) {
	mayExist := true
	defer func() { place.release(mayExist) }()
	server["placement_group"] = json.RawMessage(strconv.FormatInt(place.id, 10))
	body, err := json.Marshal(server)
	if err != nil {
		return nil, schema.Error{}, errors.New("cannot write the request that creates a server")
	}
	req = req.Clone(req.Context())
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	resp, err := p.next.RoundTrip(req)
	if err != nil {
		return nil, schema.Error{}, err
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, schema.Error{}, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	problem := errorIn(answer)
	mayExist = resp.StatusCode/100 != 4 && !isFull(problem)
	return resp, problem, nil
}

// isRefusedByGroup reports whether a creation was refused because its group is full, or was deleted meanwhile. Hetzner
// documents no code for either. The groups show the cause, whatever the code is.
func (p placing) isRefusedByGroup(ctx context.Context, status int, e schema.Error, place place, after int) bool {
	if status/100 != 4 && !isFull(e) {
		return false
	}
	if code := hcloud.ErrorCode(e.Code); isUnrelated(code) || code == hcloud.ErrorCodeUniquenessError {
		return false
	}
	// If the groups cannot be read, the error of the creation is the one to report.
	is, err := p.groups.isCause(ctx, place.id, isFull(e), after)
	return err == nil && is
}

// codeGroupFull is the code of a full group: https://github.com/hetznercloud/terraform-provider-hcloud/issues/1170.
// In 2023 and 2024 it was service_error, with the same words:
// https://github.com/kube-hetzner/terraform-hcloud-kube-hetzner/issues/1157.
const codeGroupFull = "placement_group_member_limit_reached"

var fullGroup = regexp.MustCompile(`^placement group .*contains already \d+ servers`)

// isFull reports whether an error means that the placement group holds no further server.
func isFull(e schema.Error) bool {
	return e.Code == codeGroupFull || fullGroup.MatchString(e.Message)
}

// errorIn returns the error in the body of a response, which is empty if there is none.
func errorIn(body []byte) schema.Error {
	var r schema.ErrorResponse
	_ = json.Unmarshal(body, &r)
	return r.Error
}
