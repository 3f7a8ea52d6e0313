package openstack

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/openstack/v1alpha1"
)

// settleTime is how long a creation that was not answered may still take effect: a gateway stops waiting
// for the service behind it, and the service continues.
const settleTime = 2 * time.Minute

// find returns the ID of the server, port or floating IP of a creation that was not answered. While the creation
// may still take effect and there is none, it returns an error.
func (p *projects) find(ctx context.Context, mg resource.ModernManaged) (string, error) {
	project, err := p.of(ctx, mg)
	if err != nil {
		return "", err
	}
	var id string
	switch r := mg.(type) {
	case *v1alpha1.VirtualMachine:
		id, err = project.findServer(ctx, ptr.Deref(r.Spec.ForProvider.Name, ""), r.Spec.ForProvider.Metadata)
	case *v1alpha1.Port:
		id, err = project.findPort(ctx, ptr.Deref(r.Spec.ForProvider.Name, ""), ptr.Deref(r.Spec.ForProvider.Description, ""))
	case *v1alpha1.FloatingIP:
		id, err = project.findFloatingIP(ctx, ptr.Deref(r.Spec.ForProvider.Description, ""))
	default:
		return "", fmt.Errorf("%T is not a VirtualMachine, a Port or a FloatingIP", mg)
	}
	if err != nil || id != "" {
		return id, err
	}
	if left := time.Until(meta.GetExternalCreatePending(mg).Add(settleTime)); left > 0 {
		return "", fmt.Errorf("the answer to its creation was lost, and it may still be created: it is created again in %s unless it is found", left.Truncate(time.Second))
	}
	return "", nil
}

var errNoMetadata = errors.New("spec.forProvider.metadata: must have " + machinev1alpha1.TagInstallation + " and " + machinev1alpha1.TagMachineUID + ": they identify the server if the answer to its creation is lost")

// findServer returns the ID of the oldest server with the name and the IDs of the installation and the Machine, "" if
// there is none. Nova sets the metadata by the call that creates the server. Its names are not unique.
func (p *project) findServer(ctx context.Context, name string, metadata map[string]string) (string, error) {
	installation, machine := metadata[machinev1alpha1.TagInstallation], metadata[machinev1alpha1.TagMachineUID]
	if installation == "" || machine == "" {
		return "", errNoMetadata
	}
	found, err := p.servers(ctx, servers.ListOpts{Name: "^" + regexp.QuoteMeta(name) + "$"})
	if err != nil {
		return "", fmt.Errorf("cannot list servers: %w", err)
	}
	isOf := func(f servers.Server) bool {
		return !isDeleted(f) && f.Name == name && f.Metadata[machinev1alpha1.TagInstallation] == installation && f.Metadata[machinev1alpha1.TagMachineUID] == machine
	}
	return oldest(found, isOf, func(f servers.Server) time.Time { return f.Created }).ID, nil
}

// oldest returns the first of the oldest resources that are of a Machine, the zero value if there is none.
func oldest[T any](found []T, isOf func(T) bool, created func(T) time.Time) T {
	found = slices.DeleteFunc(found, func(f T) bool { return !isOf(f) })
	if len(found) == 0 {
		var none T
		return none
	}
	return slices.MinFunc(found, func(a, b T) int { return created(a).Compare(created(b)) })
}
