package handover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func newMCMLab(t *testing.T, funcs interceptor.Funcs) *lab {
	t.Helper()
	composition := parse(`
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: machine-aws, labels: {provider: aws}}
spec:
  pipeline:
    - input: {apiVersion: fn.drover.dev/v1alpha1, kind: Infrastructure, virtualMachine: {apiVersion: aws.drover.dev/v1alpha1, kind: VirtualMachine}}`)
	composition.SetNamespace("")
	all := append(mcmObjects(3), composition)
	for i := range 3 {
		all = append(all, mcmNode(i))
	}
	theirs := schema.GroupVersion{Group: mcmGroup, Version: "v1alpha1"}
	return newLabOf(t, MCM, funcs, []schema.GroupVersionKind{
		awsMachine, theirs.WithKind("Machine"), theirs.WithKind("MachineSet"), theirs.WithKind("MachineDeployment"),
	}, []schema.GroupVersionKind{awsMachine.GroupVersion().WithKind("ClusterProviderConfig"), composition.GroupVersionKind()}, all)
}

func TestACommandImportsFromMCMAndBackByTheAPI(t *testing.T) {
	l := newMCMLab(t, interceptor.Funcs{})
	start := bare(l.look(t))
	if err := l.run(t, false).Preview(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := left(bare(l.look(t)), start); d != "" {
		t.Errorf("a preview changed: %s", d)
	}
	preview := len(l.logs)
	if err := l.run(t, false).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(l.logs) != 2*preview {
		t.Errorf("%d actions after a preview of %d: %q", len(l.logs)-preview, preview, l.logs)
	}
	if w := l.look(t); !w.isTaken() || len(w.list(machinev1alpha1.Group, "Machine")) != 3 {
		t.Error("the Machines are not Drover's")
	}
	for range 2 { // Also the second time.
		if err := l.run(t, true).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.act(t)
		if d := left(bare(l.look(t)), start); d != "" {
			t.Errorf("not as it was: %s", d)
		}
		if err := l.run(t, true).Do(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing of it is imported") {
			t.Errorf("error %v of a way back of nothing", err)
		}
		if err := l.run(t, false).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestACommandThatIsKilledAfterEachWriteIsRunAgain has a connection that breaks for good with each write, before it or after it.
func TestACommandThatIsKilledAfterEachWriteIsRunAgain(t *testing.T) {
	killed := errors.New("killed")
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("AfterTheWrite=%t", after), func(t *testing.T) {
			writes, acting := -1, false
			die := func(write func() error) error {
				if acting || writes < 0 {
					return write()
				}
				writes--
				if writes >= 0 {
					return write()
				}
				writes = 0 // All further ones fail, too.
				if after {
					if err := write(); err != nil {
						return err
					}
				}
				return killed
			}
			uids := 0
			l := newMCMLab(t, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					return die(func() error {
						uids++
						o.SetUID(types.UID(fmt.Sprint("uid-", uids)))
						o.SetFinalizers([]string{"of-its-controller"})
						return c.Create(ctx, o, opts...)
					})
				},
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					return die(func() error { return c.Patch(ctx, o, p, opts...) })
				},
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					return die(func() error { return c.Delete(ctx, o, opts...) })
				},
			})
			start := bare(l.look(t))
			for _, undo := range []bool{false, true} {
				runs := 0
				for ; ; runs++ {
					writes = 1
					err := l.run(t, undo).Do(t.Context())
					if writes = -1; err == nil || undo && strings.Contains(err.Error(), "nothing of it is imported") {
						break
					}
					if !errors.Is(err, killed) || runs > 200 {
						t.Fatalf("run %d: %v", runs, err)
					}
				}
				if runs < 5 {
					t.Errorf("killed %d times only", runs)
				}
				if w := l.look(t); !undo && (!w.isTaken() || len(w.list(machinev1alpha1.Group, "Machine")) != 3) {
					t.Error("the Machines are not Drover's")
				}
			}
			l.act(t)
			if d := left(bare(l.look(t)), start); d != "" {
				t.Errorf("not as it was: %s", d)
			}
		})
	}
}

// TestWhatShowsThatTheControllersRun has the objects that a command reads, in its own namespace and in another one.
func TestWhatShowsThatTheControllersRun(t *testing.T) {
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "mcm", Image: "registry/machine-controller-manager-provider-aws:v1", Args: []string{"--namespace=" + namespace}}}}
	deployment := func(namespace string, replicas int32) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mcm"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{Spec: pod}}}
	}
	for name, tc := range map[string]struct {
		object client.Object
		want   string
	}{
		"ADeploymentInItsNamespace":  {deployment(namespace, 1), "Deployment team/mcm: spec.replicas is 1"},
		"ADeploymentInAnotherOne":    {deployment("garden", 2), "Deployment garden/mcm: spec.replicas is 2"},
		"ADeploymentThatIsStopped":   {deployment(namespace, 0), ""},
		"ADeploymentWithPods":        {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mcm"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0), Template: corev1.PodTemplateSpec{Spec: pod}}, Status: appsv1.DeploymentStatus{Replicas: 1}}, "Deployment team/mcm: status.replicas is 1"},
		"APodThatRuns":               {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mcm-0"}, Spec: pod, Status: corev1.PodStatus{Phase: corev1.PodRunning}}, `Pod team/mcm-0: status.phase is "Running"`},
		"APodThatEnded":              {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mcm-0"}, Spec: pod, Status: corev1.PodStatus{Phase: corev1.PodFailed}}, ""},
		"ALeaseThatIsHeld":           {ptr.To(lease("machine-controller-manager", 0)), "Lease team/machine-controller-manager: mcm-0 holds it"},
		"ALeaseThatExpired":          {ptr.To(lease("machine-controller-manager", -time.Minute)), ""},
		"ALeaseThatIsOfAnotherCloud": {&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "machine-controller"}, Spec: lease("machine-controller", 0).Spec}, ""},
		"AShoot":                     {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"gardener.cloud/role": "shoot"}}}, `Namespace "team": label gardener.cloud/role=shoot`},
	} {
		t.Run(name, func(t *testing.T) {
			l := newMCMLab(t, interceptor.Funcs{})
			if err := l.Create(t.Context(), tc.object); err != nil {
				t.Fatal(err)
			}
			start := bare(l.look(t))
			err := l.run(t, false).Do(t.Context())
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want %q", err, tc.want)
			case tc.want != "":
				if d := left(bare(l.look(t)), start); d != "" {
					t.Errorf("a refused import changed: %s", d)
				}
			}
		})
	}
}

func TestAnImportFromMCMWithoutAProviderNamesWhatIsMissing(t *testing.T) {
	l := newMCMLab(t, interceptor.Funcs{})
	c := &unstructured.Unstructured{}
	c.SetAPIVersion("apiextensions.crossplane.io/v1")
	c.SetKind("Composition")
	c.SetName("machine-aws")
	if err := l.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := l.run(t, false).Do(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no Composition of Machines with the label provider=aws: install the provider") {
		t.Errorf("error %v", err)
	}
}
