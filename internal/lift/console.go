package lift

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	ujresource "github.com/crossplane/upjet/v2/pkg/resource"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/console"
)

// ConsoleAttribute of a VM has an excerpt of its console.
const ConsoleAttribute = "console"

const (
	// consoleTimeout bounds a read of a console: a cloud that does not answer must not keep
	// the VM from being observed.
	consoleTimeout = 15 * time.Second
	// consolePoll is the longest interval between two reads of a console that is requested.
	consolePoll = time.Minute
)

// ConsoleSchema is that of ConsoleAttribute, for a VM of a Terraform provider that lacks it.
func ConsoleSchema() *schema.Schema {
	return &schema.Schema{
		Type: schema.TypeString, Computed: true,
		Description: "The end of the console of the VM, at most 4 KiB, while the annotation machine.drover.dev/read-console is \"true\". What looks like a secret is masked.",
	}
}

// wantsConsole reports whether the console of a VM is requested.
func wantsConsole(mg resource.Managed) bool {
	return mg.GetAnnotations()[machinev1alpha1.AnnotationReadConsole] == "true" && !meta.WasDeleted(mg)
}

// lastConsole is the excerpt that the status has.
func (e *external) lastConsole(mg resource.Managed) any {
	if e.behaviour.Console == nil {
		return nil
	}
	state, err := mg.(ujresource.Terraformed).GetObservation()
	if err != nil {
		return nil
	}
	return state[ConsoleAttribute]
}

// observeConsole puts the console into the status while it is requested, and removes it afterwards. If it
// cannot be read, the previous value stays: clouds refuse a read for a VM that is being created, and that is no
// error of the VM.
func (e *external) observeConsole(ctx context.Context, tr ujresource.Terraformed, state map[string]any, before any) error {
	read := e.behaviour.Console
	if read == nil {
		return nil
	}
	state[ConsoleAttribute] = nil
	if wantsConsole(tr) {
		state[ConsoleAttribute] = before
		ctx, cancel := context.WithTimeout(ctx, consoleTimeout)
		defer cancel()
		if text, err := read(ctx, tr.(resource.ModernManaged), meta.GetExternalName(tr)); err == nil {
			state[ConsoleAttribute] = console.Excerpt(text)
		}
	}
	if err := tr.SetObservation(state); err != nil {
		return fmt.Errorf("cannot write status.atProvider.%s: %w", ConsoleAttribute, err)
	}
	return nil
}
