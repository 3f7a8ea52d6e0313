package vm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/text"
)

// A Machine of a class with a list of instance types requests a VM of the first one. If the cloud has no capacity or no
// quota for it, the refusal is recorded in the status of the Machine, the VM resource is deleted, and another one is
// created for the next instance type. The provider of the VM resource deletes what exists of the refused VM, and begins
// no creation of a resource that is being deleted. So there is never a second VM.
//
// When all were refused, the list is begun again after a pause.

// The pause between two rounds, by the number of the first one.
const (
	firstPause   = time.Minute
	longestPause = 10 * time.Minute
)

func pauseAfter(round int32) time.Duration {
	return min(longestPause, firstPause<<min(max(0, round-1), 10))
}

// A choice is the instance type that is tried now.
type choice struct {
	// variant is nil if all were refused, and it is too early to try them again.
	variant *variant
	// status without the variant. It is nil if the class lists no instance types.
	status *machinev1alpha1.InstanceTypeStatus
	// exhausted is the code of the refusals if all were refused, in this round or the one before.
	exhausted string
}

// choose the first variant that was not refused in this round.
func choose(variants []variant, o Observed) choice {
	if variants[0].Name == "" {
		c := choice{variant: &variants[0]}
		if o.Machine.Status.InstanceType != nil {
			// The class is another one of the same name than before.
			c.status = &machinev1alpha1.InstanceTypeStatus{}
		}
		return c
	}
	s := o.instanceTypes()
	s.Refused = slices.DeleteFunc(s.Refused, func(r machinev1alpha1.RefusedInstanceType) bool {
		return !slices.ContainsFunc(variants, func(v variant) bool { return v.Name == r.Name })
	})
	c := choice{status: s, exhausted: exhaustedCode(variants, s)}
	for i, v := range variants {
		if !slices.ContainsFunc(s.Refused, func(r machinev1alpha1.RefusedInstanceType) bool { return r.Name == v.Name && r.Round == s.Round }) {
			c.variant = &variants[i]
			return c
		}
	}
	if !o.Now.Before(retryTime(s)) {
		s.Round++
		c.variant = &variants[0]
	}
	return c
}

// instanceTypes returns a copy of the recorded refusals, without the instance type that is tried. Times ahead of the clock
// count as now.
func (o Observed) instanceTypes() *machinev1alpha1.InstanceTypeStatus {
	settled := o.Machine.Status.DeepCopy()
	plan.SettleStatus(o.Now, settled)
	s := &machinev1alpha1.InstanceTypeStatus{}
	if is := settled.InstanceType; is != nil {
		s.Round, s.Refused = is.Round, is.Refused
	}
	s.Round = max(1, s.Round)
	return s
}

// retryTime returns the time of the next round, if all were refused in this one.
func retryTime(s *machinev1alpha1.InstanceTypeStatus) time.Time {
	var last time.Time
	for _, r := range s.Refused {
		if r.Time.After(last) {
			last = r.Time.Time
		}
	}
	return last.Add(pauseAfter(s.Round))
}

// exhaustedCode returns CapacityExhausted if all variants were refused, or QuotaExceeded if that was the cause of all.
func exhaustedCode(variants []variant, s *machinev1alpha1.InstanceTypeStatus) string {
	code := string(fn.ErrorQuotaExceeded)
	for _, v := range variants {
		i := slices.IndexFunc(s.Refused, func(r machinev1alpha1.RefusedInstanceType) bool { return r.Name == v.Name })
		if i < 0 {
			return ""
		}
		if s.Refused[i].ErrorCode != code {
			code = string(fn.ErrorCapacityExhausted)
		}
	}
	return code
}

// describe returns the status with the variant that is tried.
func (v variant) describe(b *Binding, s *machinev1alpha1.InstanceTypeStatus) *machinev1alpha1.InstanceTypeStatus {
	if v.Name == "" {
		return s
	}
	out := s.DeepCopy()
	out.Name, out.InstanceType = v.Name, v.Name
	if b.instanceTypePath != "" {
		out.InstanceType = v.Type()
	}
	capacity, _ := b.capacityOf(v) // An error leaves the capacity unknown; the condition ScalesFromZero reports it.
	out.NodeCapacity = plan.MergedCapacity(capacity, v.class.Spec.NodeCapacity)
	return out
}

// instanceTypeOf returns which instance type an existing VM resource has. Its annotation decides: a status can be lost.
func instanceTypeOf(b *Binding, o Observed) *machinev1alpha1.InstanceTypeStatus {
	name, before := o.VM.GetAnnotations()[machinev1alpha1.AnnotationInstanceType], o.Machine.Status.InstanceType
	switch {
	case name == "" && before == nil:
		return nil
	case name == "":
		return &machinev1alpha1.InstanceTypeStatus{}
	}
	s := o.instanceTypes()
	s.Name, s.InstanceType = name, name
	if before != nil && before.Name == name {
		s.InstanceType, s.NodeCapacity = before.InstanceType, before.NodeCapacity.DeepCopy()
	}
	if b != nil && b.instanceTypePath != "" {
		if v, err := fieldpath.Pave(o.VM.Object).GetString(b.instanceTypePath); err == nil && v != "" {
			s.InstanceType = v
		}
	}
	return s
}

// isListed reports whether the VM is of a class with a list of instance types.
func (o Observed) isListed() bool {
	return o.VM != nil && o.VM.GetAnnotations()[machinev1alpha1.AnnotationInstanceType] != ""
}

// mayFallBack reports whether another instance type may be tried for the Machine: its VM never ran.
func (o Observed) mayFallBack() bool {
	return o.isListed() && o.Machine.Status.ProviderID == "" && o.Machine.Spec.ProviderID == nil && o.Machine.Status.Phase != machinev1alpha1.MachineFailed
}

// NeedsInstanceTypes reports whether the class is needed to decide on an existing VM, because another instance type may be
// tried.
func (o Observed) NeedsInstanceTypes() bool { return o.mayFallBack() }

// isDiscarded reports whether the VM resource is being deleted because its instance type was refused.
func (o Observed) isDiscarded() bool {
	return o.VM.GetDeletionTimestamp() != nil && o.mayFallBack() && o.isRefusalRecorded()
}

func (o Observed) isRefusalRecorded() bool {
	s := o.Machine.Status.InstanceType
	return s != nil && slices.ContainsFunc(s.Refused, func(r machinev1alpha1.RefusedInstanceType) bool { return r.VMUID == o.VM.GetUID() })
}

// believeInventory takes the refusal of a VM that never ran from an inventory, which may see it before the provider does. By the
// verdict alone the Machine would fail, and the next one would begin with the same instance type.
func (d *Desired) believeInventory(b *Binding, o Observed) {
	r := o.Inventory
	if b == nil || d.Word.Verdict == nil || r.State != plan.InventoryFailed || !o.mayFallBack() || o.Node.NodeName != "" || o.Node.Error != "" {
		return
	}
	if code := b.classify(r.Text); code.IsExhausted() {
		d.Word.State, d.Word.ErrorCode, d.Word.Message, d.Word.Verdict = plan.VMFailed, string(code), truncate(r.Text), nil
	}
}

// isRefused reports whether the cloud has no room for the instance type of the VM. A creation that is under way, or whose
// result is unknown, is not refused: its VM may exist.
func (d *Desired) isRefused(o Observed) bool {
	return o.mayFallBack() && o.VM.GetDeletionTimestamp() == nil &&
		(d.Word.State == plan.VMCreating || d.Word.State == plan.VMFailed) && fn.ErrorCode(d.Word.ErrorCode).IsExhausted() &&
		!meta.ExternalCreateIncomplete(o.VM) && !isOperationOngoing(conditionsOf(o.VM.Unstructured))
}

// isOperationOngoing reports whether upjet calls the cloud for the resource now. LastAsyncOperation is about the call before.
func isOperationOngoing(c conditions) bool {
	return c.Get(machinev1alpha1.ConditionAsyncOperation).Reason == machinev1alpha1.ReasonOngoing
}

// fallBack records the refusal and requests the deletion of the VM resource.
func (d *Desired) fallBack(b *Binding, o Observed) {
	s := d.Word.InstanceType
	if !o.isRefusalRecorded() {
		s.Refused = append(slices.DeleteFunc(s.Refused, func(r machinev1alpha1.RefusedInstanceType) bool { return r.Name == s.Name }), machinev1alpha1.RefusedInstanceType{
			Name: s.Name, ErrorCode: d.Word.ErrorCode, Message: text.Shorten(plan.Steady(d.Word.Message), maxRefusal),
			Time: metav1.NewTime(o.Now.UTC().Truncate(time.Second)), Round: s.Round, VMUID: o.VM.GetUID(),
		})
	}
	said := ""
	if o.VM.GetDeletionTimestamp() != nil {
		said = providerError(conditionsOf(o.VM.Unstructured))
	}
	d.Word = plan.VM{State: plan.VMCreating, Name: d.Word.Name, InstanceType: s, Discard: o.VM.GetUID(), Problem: d.Word.Problem}
	var variants []variant
	if b != nil && o.Class != nil && o.Class.Spec.Provider == b.provider {
		variants, _ = b.variantsOf(o.Class)
	}
	deleted := fmt.Sprintf("%s %s is deleted", o.VM.GetKind(), o.VM.GetName())
	d.Word.Message = fmt.Sprintf("%s; %s, and the next instance type is tried", describeRefusals(s, s.Round), deleted)
	if len(variants) > 0 && variants[0].Name != "" {
		d.Word.Exhausted = exhaustedCode(variants, s)
		if next := choose(variants, o.withInstanceTypes(s)); next.variant == nil {
			d.Word.Message = describeExhaustion(s)
		}
	}
	d.Word.ErrorCode = d.Word.Exhausted
	if said != "" {
		d.Word.Message += fmt.Sprintf("; %s, and its provider reports: %s", deleted, said)
	}
	d.Word.Message = truncate(d.Word.Message)
}

// withInstanceTypes returns the view after the refusals were recorded.
func (o Observed) withInstanceTypes(s *machinev1alpha1.InstanceTypeStatus) Observed {
	o.Machine = o.Machine.DeepCopy()
	o.Machine.Status.InstanceType = s.DeepCopy()
	return o
}

// exhaust reports that all instance types were refused, and when they are tried again.
func (d *Desired) exhaust(o Observed) {
	s := d.Word.InstanceType
	d.Word.State, d.Word.ErrorCode, d.Word.Message = plan.VMCreating, d.Word.Exhausted, describeExhaustion(s)
	d.Word.LookAgain = max(time.Second, retryTime(s).Sub(o.Now))
}

// isUncertain reports whether the VM may still be refused. Until it runs, its providerID is not recorded: a Machine keeps its
// providerID for ever. An inventory that finds the VM failed or gone ends that.
func (d *Desired) isUncertain(o Observed) bool {
	return o.mayFallBack() && d.Word.State == plan.VMCreating && d.Word.Verdict == nil
}

// awaitInstanceType reports on a VM that may still be refused.
func (d *Desired) awaitInstanceType(b *Binding, o Observed) {
	if b != nil && d.Word.ProviderID == "" && o.Class != nil {
		if variants, _ := b.variantsOf(o.Class); len(variants) > 0 && variants[0].Name != "" {
			d.Word.Exhausted = exhaustedCode(variants, d.Word.InstanceType)
		}
	}
	d.Word.ProviderID, d.Word.Confirmed = "", false
	if fn.ErrorCode(d.Word.ErrorCode).IsExhausted() {
		// The provider creates the VM again already. The error is that of the attempt before.
		d.Word.ErrorCode = d.Word.Exhausted
	}
	d.describeFallback()
}

// describeFallback names the instance type that is tried after others were refused, if there is nothing else to report. If all
// were refused before, the cloud counts as exhausted until there is a VM.
func (d *Desired) describeFallback() {
	s := d.Word.InstanceType
	if s == nil || s.Name == "" || d.Word.Message != "" || len(s.Refused) == 0 {
		return
	}
	d.Word.ErrorCode = d.Word.Exhausted
	d.Word.Message = truncate(fmt.Sprintf("instance type %s is tried: %s", s.Name, describeRefusals(s, 0)))
}

// maxRefusal is the length of the message of one refusal.
const maxRefusal = 256

// describeExhaustion names all instance types, and the time at which they are tried again.
func describeExhaustion(s *machinev1alpha1.InstanceTypeStatus) string {
	return truncate(fmt.Sprintf("%s. All are tried again from %s", describeRefusals(s, 0), retryTime(s).UTC().Format(time.RFC3339)))
}

// describeRefusals names the instance types that were refused, in the given round or, with 0, in any.
func describeRefusals(s *machinev1alpha1.InstanceTypeStatus, round int32) string {
	var refused []machinev1alpha1.RefusedInstanceType
	for _, r := range s.Refused {
		if round == 0 || r.Round == round {
			refused = append(refused, r)
		}
	}
	parts := make([]string, 0, len(refused))
	for _, r := range refused {
		parts = append(parts, fmt.Sprintf("%s (%s: %s)", r.Name, r.ErrorCode, text.Shorten(r.Message, max(40, 700/len(refused)))))
	}
	return "the cloud has no room for " + strings.Join(parts, ", ")
}
