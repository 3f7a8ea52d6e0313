package drover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	tftypes "github.com/hashicorp/terraform-plugin-framework/types"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
)

const (
	// fieldManager owns the fields that a configuration names.
	fieldManager = "terraform-provider-drover"
	// fieldManagerOfReleased owns the fields that a configuration named before, and whose value must stay.
	fieldManagerOfReleased = "terraform-provider-drover-released"
	// pollInterval of an object that is waited for.
	pollInterval = 2 * time.Second
)

// wanted returns the object of a plan.
func (r *object) wanted(m objectModel) (*unstructured.Unstructured, error) {
	if m.Name.IsUnknown() || m.Namespace.IsUnknown() {
		return nil, errUnknown
	}
	u := r.kind.object(m.Namespace.ValueString(), m.Name.ValueString())
	for name, of := range map[string]tftypes.Map{"labels": m.Labels, "annotations": m.Annotations} {
		values, err := toAny(of)
		if err != nil {
			return nil, err
		}
		if values != nil {
			if err := unstructured.SetNestedField(u.Object, values, "metadata", name); err != nil {
				return nil, err
			}
		}
	}
	spec, err := toAny(m.Spec)
	if err != nil {
		return nil, err
	}
	if _, ok := spec.(map[string]any); !ok {
		return nil, fmt.Errorf("spec: is a %T: must be an object, such as { replicas = 3 }", spec)
	}
	u.Object["spec"] = spec
	return u, nil
}

// apply applies an object, which then is as the API server returned it, unless it is a dry run.
func (r *object) apply(ctx context.Context, u *unstructured.Unstructured, dryRun bool) error {
	return r.applyAs(ctx, u, fieldManager, dryRun)
}

func (r *object) applyAs(ctx context.Context, u *unstructured.Unstructured, manager string, dryRun bool) error {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}
	// A plan has shown the changes of other clients in fields that the configuration names.
	opts := metav1.PatchOptions{FieldManager: manager, Force: ptr.To(true), FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	is, err := r.kind.of(r.client, u.GetNamespace()).Patch(ctx, u.GetName(), types.ApplyPatchType, raw, opts)
	if err == nil && !dryRun {
		u.Object = is.Object
	}
	return err
}

// letGo releases spec.replicas, if the configuration no longer names it: the current number stays for the user
// or autoscaler that scales from now on. Otherwise the API server would set the default, which is 1.
func (r *object) letGo(ctx context.Context, before objectModel, want *unstructured.Unstructured) error {
	had, err := toAny(before.Spec)
	if err != nil {
		return err
	}
	old, _ := had.(map[string]any)
	if _, had := old["replicas"]; !had {
		return nil
	}
	if _, has, _ := unstructured.NestedFieldNoCopy(want.Object, "spec", "replicas"); has {
		return nil
	}
	is, err := r.get(ctx, want.GetNamespace(), want.GetName())
	if err != nil || is == nil {
		return err
	}
	released := r.kind.object(want.GetNamespace(), want.GetName())
	replicas, there, err := unstructured.NestedFieldCopy(is.Object, "spec", "replicas")
	if err != nil || !there {
		return err
	}
	released.Object["spec"] = map[string]any{"replicas": replicas}
	return r.applyAs(ctx, released, fieldManagerOfReleased, false)
}

// get returns an object, nil if there is none.
func (r *object) get(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	u, err := r.kind.of(r.client, namespace).Get(ctx, name, metav1.GetOptions{})
	if kerrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// refused adds a diagnostic for each field that the API server refuses.
func (r *object) refused(diags *diag.Diagnostics, u *unstructured.Unstructured, err error) {
	title := "The API server refuses " + r.kind.title(u.GetNamespace(), u.GetName())
	var status *kerrors.StatusError
	if errors.As(err, &status) && status.ErrStatus.Details != nil {
		for _, c := range status.ErrStatus.Details.Causes {
			if c.Field != "" {
				diags.AddAttributeError(path.Root("spec"), title, c.Field+": "+c.Message)
			}
		}
		if diags.HasError() {
			return
		}
	}
	diags.AddError(title, err.Error())
}

// wait waits until all is as the plan desires it.
func (r *object) wait(ctx context.Context, plan objectModel, timeout time.Duration, diags *diag.Diagnostics) {
	if r.kind.isSettled || !plan.Wait.ValueBool() {
		return
	}
	title := r.kind.title(plan.Namespace.ValueString(), plan.Name.ValueString())
	last := "it was not looked at yet"
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		u, err := r.get(ctx, plan.Namespace.ValueString(), plan.Name.ValueString())
		switch {
		case err != nil:
			// The API server may be unavailable for a while.
			last = err.Error()
			return false, nil //nolint:nilerr // It is reported if the wait ends.
		case u == nil:
			return false, errors.New("it was deleted meanwhile")
		}
		p := progressOf(u)
		if p.stalled != "" {
			return false, fmt.Errorf("it is stalled, and goes on when that is mended: %s", p.stalled)
		}
		last = p.waits
		return p.done, nil
	})
	switch {
	case err == nil:
	case wait.Interrupted(err):
		diags.AddError(title+" is not as spec wants it", fmt.Sprintf("After %s it waits: %s. It goes on without Terraform. Apply again to wait on, or set timeouts.", timeout, last))
	default:
		diags.AddError(title+" is not as spec wants it", err.Error())
	}
}

// remove deletes an object, and waits until it is gone.
func (r *object) remove(ctx context.Context, state objectModel, timeout time.Duration) error {
	namespace, name := state.Namespace.ValueString(), state.Name.ValueString()
	opts := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	if uid := state.UID.ValueString(); uid != "" {
		opts.Preconditions = metav1.NewUIDPreconditions(uid)
	}
	err := r.kind.of(r.client, namespace).Delete(ctx, name, opts)
	if kerrors.IsNotFound(err) || kerrors.IsConflict(err) {
		// It is gone, and there may be another object of its name.
		return nil
	}
	if err != nil {
		return err
	}
	last := "it was not looked at yet"
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		u, err := r.get(ctx, namespace, name)
		switch {
		case err != nil:
			last = err.Error()
			return false, nil //nolint:nilerr // It is reported if the wait ends.
		case u == nil || string(u.GetUID()) != state.UID.ValueString():
			return true, nil
		}
		last = deletion(u)
		return false, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("after %s its deletion waits for: %s. It goes on without Terraform", timeout, last)
	}
	return err
}
