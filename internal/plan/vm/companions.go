package vm

import (
	"github.com/drover-dev/drover/internal/plan"
)

// compose the rendered resources in order, up to the VM or the first companion before it that is not
// ready. keepCompanions keeps companions whose creation may have begun.
func (d *Desired) compose(b *Binding, o Observed, made rendering) {
	for _, c := range b.CompanionsOf(o.Class) {
		if c.afterVM {
			break
		}
		if there, ok := o.Companions[c.Name]; !ok || !plan.CreationBegan(there) {
			d.Companions[c.Name] = made.companions[c.Name]
		}
		if ready, word := await(b, c, o); !ready {
			word.Name, word.ProviderID, word.InstanceType, word.Exhausted = d.Word.Name, d.Word.ProviderID, d.Word.InstanceType, d.Word.Exhausted
			d.Word = word
			return
		}
	}
	d.VM, d.Word.State = made.vm, plan.VMCreating
}

// keepCompanions keeps existing companions desired: only the deletion of their Machine deletes
// them. Those of an existing VM are pinned like the VM, and those that depend on it once they are
// ready.
func (d *Desired) keepCompanions(b *Binding, o Observed) {
	for name, there := range o.Companions {
		if d.Companions[name] == nil {
			d.Companions[name] = keep(there, o.Machine)
		}
		if d.Word.ProviderID != "" && (!plan.IsAfterVM(there) || b.isCompanionReady(name, o)) {
			pin(d.Companions[name])
		}
	}
}
