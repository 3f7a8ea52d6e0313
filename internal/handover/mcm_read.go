package handover

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/move"
)

// read adds the VM resources, the configuration of the class, and the traces of the controllers.
func (s mcm) read(ctx context.Context, x *reader, r *Run) {
	w := x.world
	w.MCM.Now, w.MCM.Confirmed = r.now(), r.Confirmed
	if class := w.class(); class != nil && w.cloud() != nil {
		kind, err := move.VMKind(ctx, x.Client, stringAt(class, "spec", "provider"))
		switch {
		case err == nil:
			w.MCM.Kind = kind
			ref := func(field string) string { return stringAt(class, "spec", "providerConfigRef", field) }
			x.get(ctx, kind.GroupVersion().WithKind(ref("kind")), ref("name"))
		case !move.IsWithoutComposition(err):
			x.err = err
		}
	}
	if kind := s.vmKind(w); kind.Kind != "" {
		x.list(ctx, kind)
	}
	if x.err != nil {
		return
	}
	x.err = w.MCM.read(ctx, x.Client, r)
}

// read reads the Leases and the namespace, and the Deployments that may be of the controllers. Those of other namespaces may be many,
// and are read once: a controller that starts there later takes its Lease.
func (s *surroundings) read(ctx context.Context, c client.Client, r *Run) error {
	for _, name := range leasesMCM {
		lease := coordinationv1.Lease{}
		switch err := c.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, &lease); {
		case err == nil:
			s.Leases = append(s.Leases, lease)
		case !kerrors.IsNotFound(err):
			return fmt.Errorf("cannot read Lease %s/%s: %w", r.Namespace, name, err)
		}
	}
	ns := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: r.Namespace}, ns); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read Namespace %s: %w", r.Namespace, err)
	}
	s.Shoot = ns.Labels["gardener.cloud/role"] == "shoot"
	if !r.lookedElsewhere {
		all, err := deployments(ctx, c, r.Namespace, true)
		if err != nil && !kerrors.IsForbidden(err) {
			return err
		}
		r.elsewhere, r.lookedElsewhere = all, true
	}
	here, err := deployments(ctx, c, r.Namespace, false)
	if err != nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(r.Namespace)); err != nil {
		return fmt.Errorf("cannot list Pods of namespace %s: %w", r.Namespace, err)
	}
	s.Workloads = append(here, r.elsewhere...)
	for _, p := range pods.Items {
		x := Workload{Name: "Pod " + p.Namespace + "/" + p.Name, Namespace: p.Namespace, Containers: p.Spec.Containers}
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			x.Why = fmt.Sprintf("status.phase is %q", p.Status.Phase)
		}
		s.Workloads = append(s.Workloads, x)
	}
	return nil
}

// deployments returns the Deployments of a namespace, or of all other namespaces.
func deployments(ctx context.Context, c client.Client, namespace string, others bool) ([]Workload, error) {
	l := &appsv1.DeploymentList{}
	in := client.InNamespace(namespace)
	if others {
		in = client.InNamespace("")
	}
	if err := c.List(ctx, l, in); err != nil {
		return nil, fmt.Errorf("cannot list Deployments: %w", err)
	}
	var out []Workload
	for _, d := range l.Items {
		if (d.Namespace == namespace) == others {
			continue
		}
		x := Workload{Name: "Deployment " + d.Namespace + "/" + d.Name, Namespace: d.Namespace, Containers: d.Spec.Template.Spec.Containers}
		switch {
		case ptr.Deref(d.Spec.Replicas, 1) != 0:
			x.Why = fmt.Sprintf("spec.replicas is %d", ptr.Deref(d.Spec.Replicas, 1))
		case d.Status.Replicas != 0:
			x.Why = fmt.Sprintf("status.replicas is %d", d.Status.Replicas)
		}
		out = append(out, x)
	}
	return out, nil
}
