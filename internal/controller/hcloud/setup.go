package hcloud

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	tjcontroller "github.com/crossplane/upjet/v2/pkg/controller"
	"github.com/crossplane/upjet/v2/pkg/terraform"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/hcloud/v1alpha1"
	config "github.com/drover-dev/drover/config/hcloud"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/lift"
)

// Setup adds all controllers of the provider.
func Setup(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	// The log of the Terraform provider only repeats its results.
	log.SetOutput(io.Discard)
	pc, err := config.Provider()
	if err != nil {
		return err
	}
	if err := providerconfig.Setup(mgr, o, configs, &v1alpha1.VirtualMachineList{}); err != nil {
		return fmt.Errorf("cannot set up the controllers of provider configs: %w", err)
	}
	p := newProjects(mgr.GetClient())
	setupInventories(mgr, o, p)
	return lift.Setup(mgr, tjcontroller.Options{
		Options:               o,
		Provider:              pc,
		OperationTrackerStore: tjcontroller.NewOperationStore(o.Logger),
		SetupFn:               lift.Namespaced(p.terraformSetup),
	}, p.behaviours())
}

func (p *projects) behaviours() map[string]lift.Behaviour {
	return map[string]lift.Behaviour{
		config.Server: {Ready: config.Ready, Find: p.find, Gone: p.gone, Deleted: p.deleteEmptyGroups, Immutable: true, Reboot: p.reboot},
	}
}

// terraformSetup gives the Terraform provider the client of mg's project. The client of a server that is to be created
// in a placement group of a prefix chooses the group.
func (p *projects) terraformSetup(ctx context.Context, _ client.Reader, mg resource.ModernManaged) (terraform.Setup, error) {
	project, err := p.of(ctx, mg)
	if err != nil {
		return terraform.Setup{}, err
	}
	if o := groupOwnerOf(mg); o.prefix != "" && meta.GetExternalName(mg) == "" {
		return terraform.Setup{Meta: project.newClient(placing{next: project.transport, groups: project.groups, owner: o}, retries)}, nil
	}
	return terraform.Setup{Meta: project.Client}, nil
}
