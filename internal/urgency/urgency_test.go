package urgency

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
)

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

// levels is a Judge of objects by their names.
type levels map[string]Level

func (l levels) judge(req reconcile.Request) Level { return l[req.Name] }

func TestTheLevelOfAManagedResource(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	vm := func(name string, change func(*v1alpha1.VirtualMachine)) *v1alpha1.VirtualMachine {
		v := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		change(v)
		return v
	}
	judge := OfManaged(fake.NewClientBuilder().WithScheme(s).WithObjects(
		vm("new", func(*v1alpha1.VirtualMachine) {}),
		vm("runs", func(v *v1alpha1.VirtualMachine) { v.SetConditions(xpv2.Available()) }),
		vm("creating", func(v *v1alpha1.VirtualMachine) { v.SetConditions(xpv2.Creating()) }),
		vm("deleted", func(v *v1alpha1.VirtualMachine) {
			v.SetConditions(xpv2.Available())
			v.Finalizers, v.DeletionTimestamp = []string{"example.org/f"}, ptr.To(metav1.Now())
		}),
	).Build(), &v1alpha1.VirtualMachine{})
	for name, want := range map[string]Level{"new": Starting, "runs": Routine, "creating": Starting, "deleted": Deleting, "gone": Routine} {
		if got := judge(request(name)); got != want {
			t.Errorf("one that is %s has level %d, want %d", name, got, want)
		}
	}
}

// TestAMassEventDelaysNoDeletionAndNoCreation adds requests of 500 objects that run before those of a new and of a deleted one.
func TestAMassEventDelaysNoDeletionAndNoCreation(t *testing.T) {
	add := map[string]func(workqueue.TypedRateLimitingInterface[reconcile.Request], reconcile.Request){
		"by an event": func(q workqueue.TypedRateLimitingInterface[reconcile.Request], r reconcile.Request) { q.Add(r) },
		"after a time": func(q workqueue.TypedRateLimitingInterface[reconcile.Request], r reconcile.Request) {
			q.AddAfter(r, time.Second)
		},
		"after an error": func(q workqueue.TypedRateLimitingInterface[reconcile.Request], r reconcile.Request) {
			q.AddRateLimited(r)
		},
		"at the start":        withPriority(handler.LowPriority),
		"with a level before": withPriority(int(Routine)),
	}
	for name, add := range add {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				of := levels{"new": Starting, "deleted": Deleting}
				q := NewQueue(of.judge)("test", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute))
				defer q.ShutDown()
				for i := range 500 {
					add(q, request(fmt.Sprintf("runs-%d", i)))
				}
				add(q, request("new"))
				add(q, request("deleted"))
				time.Sleep(2 * time.Second)
				synctest.Wait()
				var got []string
				for range 3 {
					r, _ := q.Get()
					got = append(got, r.Name)
				}
				if want := []string{"deleted", "new", "runs-0"}; !slices.Equal(got, want) {
					t.Errorf("they are worked on in the order %q, want %q", got, want)
				}
			})
		})
	}
}

func withPriority(p int) func(workqueue.TypedRateLimitingInterface[reconcile.Request], reconcile.Request) {
	return func(q workqueue.TypedRateLimitingInterface[reconcile.Request], r reconcile.Request) {
		q.(priorityqueue.PriorityQueue[reconcile.Request]).AddWithOpts(priorityqueue.AddOpts{Priority: &p}, r)
	}
}

// TestAnObjectIsNotUrgentForEver is about a Machine that runs: its requeue comes with the priority of its creation.
func TestAnObjectIsNotUrgentForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := levels{"started": Starting, "new": Starting}
		q := NewQueue(of.judge)("test", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute)).(priorityqueue.PriorityQueue[reconcile.Request])
		defer q.ShutDown()
		q.Add(request("started"))
		synctest.Wait()
		r, priority, _ := q.GetWithPriority()
		delete(of, "started")
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, r)
		q.Done(r)
		q.Add(request("new"))
		synctest.Wait()
		if first, _ := q.Get(); first.Name != "new" {
			t.Errorf("%s is worked on first", first.Name)
		}
	})
}

// TestRoutineUsesUpNoBudgetOfOthers has 10,000 objects that are looked at, and one that is deleted. With one budget of 100 a
// second, of which 1000 are there at the beginning, its reconcile waits for 90 s.
func TestRoutineUsesUpNoBudgetOfOthers(t *testing.T) {
	wait := func(l ratelimiter.RateLimiter) time.Duration {
		called := ""
		inner := reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			called = r.Name
			return reconcile.Result{}, nil
		})
		r := Limit("test", inner, levels{"deleted": Deleting}.judge, l)
		for i := range 10000 {
			if _, err := r.Reconcile(t.Context(), request(fmt.Sprintf("runs-%d", i))); err != nil {
				t.Fatal(err)
			}
		}
		result, err := r.Reconcile(t.Context(), request("deleted"))
		if err != nil || (result.RequeueAfter == 0) != (called == "deleted") {
			t.Fatalf("it is asked again after %s, and %s was called: %v", result.RequeueAfter, called, err)
		}
		return result.RequeueAfter.Round(time.Second)
	}
	synctest.Test(t, func(t *testing.T) {
		if got := wait(NewLimiter(100)); got != 0 {
			t.Errorf("with budgets of their own the deletion waits for %s", got)
		}
		if got := wait(ratelimiter.NewGlobal(100)); got != 90*time.Second {
			t.Errorf("with one budget the deletion waits for %s", got)
		}
	})
}

func TestUrgentReconcilesHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, limited := NewLimiter(1), 0
		r := Limit("test", reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }),
			func(reconcile.Request) Level { return Starting }, l)
		for i := range 20 {
			result, err := r.Reconcile(t.Context(), request(fmt.Sprint(i)))
			if err != nil {
				t.Fatal(err)
			}
			if result.RequeueAfter > 0 {
				limited++
			}
		}
		if limited != 10 {
			t.Errorf("%d of 20 reconciles wait, want 10", limited)
		}
	})
}
