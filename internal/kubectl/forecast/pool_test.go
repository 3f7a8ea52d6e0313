package forecast_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/forecast"
	"github.com/drover-dev/drover/internal/plan/pool"
)

var poolNow = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func offer() fn.Pool {
	return fn.Pool{
		Versions: []string{"v1.35.4", "v1.35.5"},
		Classes: []fn.OfferedClass{
			{Name: "small", ClassRef: machinev1alpha1.ClassReference{Kind: "MachineClass", Name: "small-1"}, FailureDomains: []machinev1alpha1.FailureDomain{"a", "b"}},
			{Name: "large", ClassRef: machinev1alpha1.ClassReference{Kind: "MachineClass", Name: "large-1"}, FailureDomains: []machinev1alpha1.FailureDomain{"a", "b"}},
		},
	}
}

// poolOf four Nodes in two failure domains, as its planner made it.
func poolOf(t *testing.T) (*machinev1alpha1.NodePool, []machinev1alpha1.MachineDeployment) {
	t.Helper()
	p := &machinev1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "1"}}
	p.Spec.Class, p.Spec.Version, p.Spec.Size = "small", "v1.35.4", ptr.To(int32(4))
	p.Spec.Strategy.Strategy = spec().Strategy
	is := []machinev1alpha1.MachineDeployment{}
	for range 5 {
		o := pool.Observed{Pool: p, Namespace: p.Namespace, Offer: offer()}
		for i := range is {
			d := is[i].DeepCopy()
			d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = d.Spec.Replicas, d.Spec.Replicas, d.Spec.Replicas
			d.Status.DesiredReplicas = &d.Spec.Replicas
			o.Deployments = append(o.Deployments, pool.Deployment{MachineDeployment: d, Observed: true})
		}
		decision := pool.Plan(poolNow, o)
		p.Status, is = decision.Status, nil
		for _, d := range decision.Deployments {
			is = append(is, *d.MachineDeployment)
		}
	}
	if len(is) != 2 || is[0].Spec.Replicas != 2 || is[1].Spec.Replicas != 2 {
		t.Fatalf("the pool has %+v", is)
	}
	return p, is
}

func TestAChangeOfAPoolIsOneOfEachOfItsDeployments(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*machinev1alpha1.NodePoolSpec)
		// want has replicas and template of each MachineDeployment, or the problem.
		want string
	}{
		"Version": {"a version reaches all failure domains", func(s *machinev1alpha1.NodePoolSpec) { s.Version = "v1.35.5" }, "2 v1.35.5 small-1, 2 v1.35.5 small-1"},
		"Class":   {"a class reaches all failure domains", func(s *machinev1alpha1.NodePoolSpec) { s.Class = "large" }, "2 v1.35.4 large-1, 2 v1.35.4 large-1"},
		"Larger":  {"a size is spread", func(s *machinev1alpha1.NodePoolSpec) { s.Size = ptr.To(int32(7)) }, "4 v1.35.4 small-1, 3 v1.35.4 small-1"},
		"Smaller": {"a size is spread", func(s *machinev1alpha1.NodePoolSpec) { s.Size = ptr.To(int32(2)) }, "1 v1.35.4 small-1, 1 v1.35.4 small-1"},
		"NoSuchZone": {"a time zone that does not exist changes nothing", func(s *machinev1alpha1.NodePoolSpec) {
			s.Version, s.Rollout.Windows = "v1.35.5", []machinev1alpha1.TimeWindow{{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "Mars/Base"}}
		}, "spec.rollout.windows[0].timeZone"},
		"Unknown": {"what is not offered changes nothing", func(s *machinev1alpha1.NodePoolSpec) { s.Class = "huge" }, "spec.class"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, is := poolOf(t)
			tc.change(&p.Spec)
			var got []string
			all := forecast.OfPool(poolNow, forecast.PoolInput{After: p, Offer: offer(), Deployments: is, Of: func(d *machinev1alpha1.MachineDeployment) forecast.Input {
				got = append(got, fmt.Sprintf("%d %s %s", d.Spec.Replicas, d.Spec.Template.Spec.Version, d.Spec.Template.Spec.ClassRef.Name))
				return forecast.Input{TargetRead: true}
			}})
			if len(got) == 0 && len(all) == 1 && len(all[0].Blocks) == 1 {
				got = append(got, all[0].Blocks[0].Message)
			}
			if text := strings.Join(got, ", "); !strings.Contains(text, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, text, tc.want)
			}
		})
	}
}

func TestTheWindowsOfAPoolAreThoseOfItsForecasts(t *testing.T) {
	p, is := poolOf(t)
	p.Spec.Version = "v1.35.5"
	p.Spec.Rollout.Windows = []machinev1alpha1.TimeWindow{{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}}}
	all := forecast.OfPool(poolNow, forecast.PoolInput{After: p, Offer: offer(), Deployments: is, Of: func(d *machinev1alpha1.MachineDeployment) forecast.Input {
		in := forecast.Input{TargetRead: true}
		m := machinev1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name + "-1", UID: "s", Annotations: map[string]string{machinev1alpha1.AnnotationRevision: "1"}}}
		m.Spec.Template = is[0].Spec.Template
		m.Spec.Replicas, m.Status.Replicas = 2, 2
		in.Sets = append(in.Sets, m)
		for i := range 2 {
			ma := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: fmt.Sprint("m", i), OwnerReferences: []metav1.OwnerReference{{Kind: "MachineSet", Name: m.Name, UID: m.UID, Controller: ptr.To(true)}}}}
			in.Machines = append(in.Machines, ma)
		}
		return in
	}})
	if len(all) != 2 {
		t.Fatalf("there are %d forecasts", len(all))
	}
	for _, f := range all {
		if want := "It begins at 2026-01-01T02:00:00Z, when the next window opens"; f.Window != want || len(f.Replaced) != 2 {
			t.Errorf("%s: %q and %d replaced, want %q and 2", f.Name, f.Window, len(f.Replaced), want)
		}
	}
}

func TestTheFailureDomainsOfAPoolFollowOneAnother(t *testing.T) {
	p, is := poolOf(t)
	p.Spec.Version = "v1.35.5"
	p.Spec.FailureDomains = []machinev1alpha1.FailureDomain{"b", "a"}
	p.Spec.Strategy.FailureDomains = machinev1alpha1.FailureDomainsOneByOne
	all := forecast.OfPool(poolNow, forecast.PoolInput{After: p, Offer: offer(), Deployments: is, Of: func(d *machinev1alpha1.MachineDeployment) forecast.Input {
		s := machinev1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name + "-1", UID: "s"}}
		s.Spec.Template = is[slices.IndexFunc(is, func(b machinev1alpha1.MachineDeployment) bool { return b.Name == d.Name })].Spec.Template
		m := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "m", OwnerReferences: []metav1.OwnerReference{{Kind: "MachineSet", Name: s.Name, UID: s.UID, Controller: ptr.To(true)}}}}
		return forecast.Input{TargetRead: true, Sets: []machinev1alpha1.MachineSet{s}, Machines: []machinev1alpha1.Machine{m}}
	}})
	follows := map[string]string{}
	for _, f := range all {
		follows[f.Name] = f.Follows
		if len(f.Replaced) != 1 {
			t.Errorf("%s: %v are replaced, and %v wait", f.Name, f.Replaced, f.Waiting)
		}
	}
	a, b := is[0].Name, is[1].Name
	if len(follows) != 2 || follows[b] != "" || follows[a] != b {
		t.Errorf("%v, want %s after %s", follows, a, b)
	}
}
