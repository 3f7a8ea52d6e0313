package openstack

import (
	"context"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	tjcontroller "github.com/crossplane/upjet/v2/pkg/controller"
	"github.com/crossplane/upjet/v2/pkg/terraform"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/openstack/v1alpha1"
	config "github.com/drover-dev/drover/config/openstack"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/lift"
)

// Setup adds all controllers of the provider.
func Setup(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	// The log of the Terraform provider only repeats its results, and would disclose user data.
	log.SetOutput(io.Discard)
	pc, err := config.Provider()
	if err != nil {
		return err
	}
	if err := providerconfig.Setup(mgr, o, configs, &v1alpha1.VirtualMachineList{}, &v1alpha1.PortList{}, &v1alpha1.FloatingIPList{}); err != nil {
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
		config.Instance: {
			Ready: p.ready, CreationUnknown: creationUnknown, Find: p.find, Gone: p.gone, Immutable: true, Console: p.console,
			Reboot: p.reboot,
		},
		config.Port: {
			Ready: config.PortReady, CreationUnknown: besideUnknown, Find: p.find, Gone: p.gone, Immutable: true,
		},
		config.FloatingIP: {
			Ready: config.FloatingIPReady, CreationUnknown: besideUnknown, Find: p.find, Gone: p.gone, Immutable: true,
		},
	}
}

// ready returns the condition of a server, with the fault message of a failed one.
func (p *projects) ready(state map[string]any) xpv2.Condition {
	c := config.Ready(state)
	id, _ := state["id"].(string)
	if fault := p.faults.of(id); fault != "" && c.Reason == xpv2.ReasonUnavailable {
		return c.WithMessage(c.Message + ": " + fault)
	}
	return c
}

func creationUnknown(err error) bool { return strings.Contains(err.Error(), codeCreationUnknown) }

// terraformSetup gives the Terraform provider the client of mg's project.
func (p *projects) terraformSetup(ctx context.Context, _ client.Reader, mg resource.ModernManaged) (terraform.Setup, error) {
	project, err := p.of(ctx, mg)
	if err != nil {
		return terraform.Setup{}, err
	}
	return terraform.Setup{Meta: project.config()}, nil
}
