package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestTheAPIServerRefusesBadInput has input that a user of kubectl gets an immediate error for.
func TestTheAPIServerRefusesBadInput(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	cases := map[string]struct {
		change func(md *machinev1alpha1.MachineDeployment)
		want   []string
	}{
		"NegativeReplicas": {
			func(md *machinev1alpha1.MachineDeployment) { md.Spec.Replicas = -1 },
			[]string{"spec.replicas", "-1", "greater than or equal to 0"},
		},
		"SurgeAndUnavailableBothZero": {
			func(md *machinev1alpha1.MachineDeployment) {
				md.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt(0))
				md.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt(0))
			},
			[]string{"spec.strategy.rollingUpdate", "maxSurge and maxUnavailable cannot both be 0"},
		},
		"SelectorThatDoesNotMatchTheTemplate": {
			func(md *machinev1alpha1.MachineDeployment) {
				md.Spec.Selector.MatchLabels = map[string]machinev1alpha1.LabelValue{"pool": "other"}
			},
			[]string{"selector.matchLabels must match template.metadata.labels"},
		},
		"InvalidVersion": {
			func(md *machinev1alpha1.MachineDeployment) { md.Spec.Template.Spec.Version = "1.35" },
			[]string{"spec.template.spec.version", "must be a kubelet version like v1.35.4"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			md := f.Deployment("bad", 1, 1, 0)
			tc.change(md)
			err := f.Client.Create(t.Context(), md)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not contain %q: %v", want, err)
				}
			}
		})
	}
}

// TestBadInputThatOnlyDroverCanSee changes a running MachineDeployment: Drover reports a
// condition and an event, and touches no running Machine.
func TestBadInputThatOnlyDroverCanSee(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	f.Create(t, f.Class("of-another-provider", "nimbus", `{}`))
	f.Create(t, f.Class("misspelt", "local", `{"image":"ubuntu-24.04","size":"small","flavour":"sweet"}`))
	f.Create(t, f.Class("mistyped", "local", `{"image":"ubuntu-24.04","size":3}`))

	md := f.Deployment("workers", 2, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	before, err := f.VMs(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	cases := []struct {
		name, class string
		// kind of the objects that have the condition
		kind      client.ObjectList
		condition string
		want      []string
	}{
		{"UnknownClass", "no-such-class", &machinev1alpha1.MachineDeploymentList{}, "Valid",
			[]string{"ClassNotFound", "spec.template.spec.classRef.name", "no-such-class"}},
		{"ClassOfAnotherProvider", "of-another-provider", &machinev1alpha1.MachineDeploymentList{}, "Valid",
			[]string{"CompositionNotFound", "nimbus"}},
		{"UnknownFieldInForProvider", "misspelt", &machinev1alpha1.MachineDeploymentList{}, "Valid",
			[]string{"ForProviderInvalid", "forProvider.flavour"}},
		{"WrongTypeInForProvider", "mistyped", &machinev1alpha1.MachineDeploymentList{}, "Valid",
			[]string{"ForProviderInvalid", "forProvider.size"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			f.Patch(t, md, fmt.Sprintf(`{"spec":{"template":{"spec":{"classRef":{"name":%q}}}}}`, tc.class))
			patience.Eventually(t, func(ctx context.Context) string {
				return answered(ctx, f, tc.kind, tc.condition, tc.want)
			})
			f.Throughout(t, func(ctx context.Context) string { return untouched(ctx, f, before) })
			if n := len(machineNames(t, f)); n != 2 {
				t.Errorf("there are %d Machines: none can be made of that class", n)
			}
		})
	}

	step(t, "ACompositionOfAnotherKindIsRefused", func(t *testing.T) {
		// Crossplane refuses it before it runs the pipeline.
		f.Patch(t, md, `{"spec":{"crossplane":{"compositionRef":{"name":"machine-local"}}}}`)
		patience.Eventually(t, func(ctx context.Context) string {
			return answered(ctx, f, &machinev1alpha1.MachineDeploymentList{}, "Synced", []string{"ReconcileError", "referenced composition is not compatible"})
		})
		if s := untouched(t.Context(), f, before); s != "" {
			t.Error(s)
		}
		f.Patch(t, md, `{"spec":{"crossplane":{"compositionRef":{"name":"machinedeployment"}}}}`)
	})

	step(t, "TheGoodClassMendsIt", func(t *testing.T) {
		f.Patch(t, md, `{"spec":{"template":{"spec":{"classRef":{"name":"small"}}}}}`)
		f.AwaitDeployment(t, md.Name)
		if s := untouched(t.Context(), f, before); s != "" {
			t.Error(s)
		}
	})
	kubectl(t, f, "delete", "md", md.Name)
	f.AwaitNothing(t)
}

// TestAClassOfAnotherProviderThanTheComposition has a mistake that is only possible for a Machine
// without a set, whose Composition the user selects.
func TestAClassOfAnotherProviderThanTheComposition(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	f.Create(t, f.Class("of-another-provider", "nimbus", `{}`))
	m := &machinev1alpha1.Machine{}
	m.Namespace, m.Name, m.Spec = f.Namespace, "lone", f.MachineSpec(kit.NewVersion)
	m.Spec.ClassRef.Name = "of-another-provider"
	f.Create(t, m)
	patience.Eventually(t, func(ctx context.Context) string {
		return answered(ctx, f, &machinev1alpha1.MachineList{}, "Valid", []string{"ProviderMismatch", "nimbus", "local"})
	})
	kubectl(t, f, "delete", "machine", m.Name)
	f.AwaitNothing(t)
}

// TestTargetClusterCredentials checks that missing or wrong credentials hold new Machines and are
// reported. Once they are corrected, no restart is needed.
func TestTargetClusterCredentials(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	pc := &clusterv1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "target"}}
	pc.Spec.Credentials = clusterv1alpha1.Credentials{
		Source:    clusterv1alpha1.CredentialsSecret,
		SecretRef: &clusterv1alpha1.SecretKeySelector{Name: "target", Key: "kubeconfig"},
	}
	f.Create(t, pc)
	md := f.Deployment("workers", 1, 1, 0)
	md.Spec.Template.Spec.ClusterRef = machinev1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "target"}
	f.Create(t, md)

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "target"}}
	cases := []struct {
		name       string
		kubeconfig []byte
		want       []string
	}{
		{"Missing", nil, []string{"CredentialsMissing", f.Namespace + "/target"}},
		{"NoKubeconfig", []byte("not a kubeconfig"), []string{"CredentialsInvalid", f.Namespace + "/target", "kubeconfig"}},
		{"WrongUser", wrongUser(t, f), []string{"Unauthorized"}},
		{"UserWithoutRights", plane.Target.CredentialsOf(t, client.ObjectKey{Namespace: "default", Name: "nobody"}).Kubeconfig,
			[]string{"Unauthorized", "lack a right", `HTTP 403 (Forbidden) to GET /api/v1/nodes`}},
	}
	for _, tc := range cases {
		step(t, tc.name, func(t *testing.T) {
			if tc.kubeconfig != nil {
				upsert(t, f, secret, tc.kubeconfig)
			}
			patience.Eventually(t, func(ctx context.Context) string {
				return answered(ctx, f, &clusterv1alpha1.ProviderConfigList{}, "Reachable", tc.want)
			})
			if vms, err := f.VMs(t.Context()); err != nil || len(vms) > 0 {
				t.Errorf("VMs %v, %v: none may be made that cannot join", vms, err)
			}
		})
	}
	step(t, "EachRightThatLacksIsNamed", func(t *testing.T) {
		patience.Eventually(t, func(ctx context.Context) string {
			return answered(ctx, f, &clusterv1alpha1.ProviderConfigList{}, "Authorized",
				[]string{"RightsMissing", "delete nodes", "create pods/eviction", "create secrets in kube-system"})
		})
	})
	step(t, "TheDeploymentSaysWhatItWaitsFor", func(t *testing.T) {
		awaitFrozen(t, f, md, "TargetUnreachable", `ProviderConfig "target"`, "Unauthorized")
	})
	step(t, "TheRightOnesMendIt", func(t *testing.T) {
		upsert(t, f, secret, humanKubeconfig(t, f))
		f.AwaitDeployment(t, md.Name)
	})
	kubectl(t, f, "delete", "md", md.Name)
	kubectl(t, f, "delete", "providerconfig.cluster.drover.dev", pc.Name)
	kubectl(t, f, "delete", "secret", secret.Name)
	f.AwaitNothing(t)
}

// answered looks for an object with a condition that is not True and has all of the texts.
func answered(ctx context.Context, f kit.Fleet, l client.ObjectList, condition string, want []string) string {
	if err := f.Client.List(ctx, l, client.InNamespace(f.Namespace)); err != nil {
		return err.Error()
	}
	b, err := json.Marshal(l)
	if err != nil {
		return err.Error()
	}
	got := struct {
		Items []struct {
			Status struct{ Conditions []metav1.Condition }
		}
	}{}
	if err := json.Unmarshal(b, &got); err != nil {
		return err.Error()
	}
	for _, o := range got.Items {
		for _, c := range o.Status.Conditions {
			text := c.Reason + ": " + c.Message
			if c.Type != condition || c.Status == metav1.ConditionTrue {
				continue
			}
			missing := false
			for _, w := range want {
				missing = missing || !strings.Contains(text, w)
			}
			if !missing {
				return ""
			}
		}
	}
	return fmt.Sprintf("no condition %s names %v\n%s", condition, want, f.Describe(ctx))
}

// untouched checks that the VMs are the same as before and still run.
func untouched[VM any](ctx context.Context, f kit.Fleet, before []VM) string {
	now, err := f.VMs(ctx)
	if err != nil {
		return err.Error()
	}
	a, _ := json.Marshal(before)
	b, _ := json.Marshal(now)
	if string(a) != string(b) {
		return fmt.Sprintf("the VMs were %s and are %s", a, b)
	}
	return ""
}
