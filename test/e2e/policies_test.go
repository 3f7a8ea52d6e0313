package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestATenantWithTheGeneratedRoleCannotWriteWhatIsNotItsOwn has an account with exactly the role
// that Crossplane's RBAC manager generates for editors in its namespace. The role allows each
// request of this test. A policy must refuse it.
func TestATenantWithTheGeneratedRoleCannotWriteWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	victim := running(t, f, "victim")
	vm := victim.vmResource(t)
	as := tenant(t, f, "crossplane-edit")
	patience.Eventually(t, func(ctx context.Context) string {
		if err := as.Create(ctx, f.Deployment("pool", 0, 1, 0)); client.IgnoreAlreadyExists(err) != nil {
			return err.Error()
		}
		return ""
	})
	f.AwaitDeployment(t, "pool")
	set := setOf(t, f, "pool")

	const (
		status, component, operator, sizes = "drover-status-writers", "drover-component-kinds", "drover-operator-kinds", "drover-autoscaler-sizes"
		machines, clusters, local          = "machine.drover.dev/v1alpha1", "cluster.drover.dev/v1alpha1", "local.drover.dev/v1alpha1"
	)
	class := object(machines, "MachineClass", f.Namespace, "small")
	pool := object(machines, "MachineDeployment", f.Namespace, "pool")
	cases := map[string]struct {
		policy string
		want   string
		try    func(ctx context.Context) error
	}{
		"TheStatusOfAMachine": {status, "the status of machines is written only by the component that observes it", func(ctx context.Context) error {
			return as.Status().Patch(ctx, object(machines, "Machine", f.Namespace, "victim"), patch(`{"status":{"providerID":"aws:///eu-1/i-controlplane1"}}`))
		}},
		"TheStatusOfAMachineGroup": {status, "the status of machinegroups", func(ctx context.Context) error {
			return as.Status().Patch(ctx, object(machines, "MachineGroup", f.Namespace, set), patch(`{"status":{"digest":"forged"}}`))
		}},
		"TheStatusOfAMachineSet": {status, "the status of machinesets", func(ctx context.Context) error {
			return as.Status().Patch(ctx, object(machines, "MachineSet", f.Namespace, set), patch(`{"status":{"replicas":7,"readyReplicas":7,"availableReplicas":7,"terminatingReplicas":0}}`))
		}},
		"TheStatusOfAMachineDeployment": {status, "the status of machinedeployments", func(ctx context.Context) error {
			return as.Status().Patch(ctx, pool, patch(`{"status":{"replicas":7}}`))
		}},
		"TheStatusOfAVM": {status, "the status of virtualmachines", func(ctx context.Context) error {
			return as.Status().Patch(ctx, object(local, "VirtualMachine", f.Namespace, vm), patch(`{"status":{"atProvider":{"providerId":"local://of-another"}}}`))
		}},
		"AVMResourceThatWouldDeleteAForeignVM": {component, "virtualmachines are written only by Drover and Crossplane", func(ctx context.Context) error {
			return as.Create(ctx, withAnnotation(object(local, "VirtualMachine", f.Namespace, "evil", "spec", map[string]any{
				"forProvider": map[string]any{"name": "evil", "image": "debian-12", "size": "small"},
			}), "crossplane.io/external-name", "vm-of-another"))
		}},
		"TheExternalNameOfAVMResource": {component, "virtualmachines", func(ctx context.Context) error {
			return as.Patch(ctx, object(local, "VirtualMachine", f.Namespace, vm), patch(`{"metadata":{"annotations":{"crossplane.io/external-name":"vm-of-another"}}}`))
		}},
		"TheFinalizersOfAVMResource": {component, "virtualmachines", func(ctx context.Context) error {
			return as.Patch(ctx, object(local, "VirtualMachine", f.Namespace, vm), patch(`{"metadata":{"finalizers":null}}`))
		}},
		"TheDeletionOfAVMResource": {component, "has no right to delete virtualmachines", func(ctx context.Context) error {
			return as.Delete(ctx, object(local, "VirtualMachine", f.Namespace, vm))
		}},
		"AMachineGroup": {component, "machinegroups are written only by Drover and Crossplane", func(ctx context.Context) error {
			return as.Create(ctx, object(machines, "MachineGroup", f.Namespace, "evil", "spec", map[string]any{}))
		}},
		"TheDeletionOfAMachineGroup": {component, "machinegroups", func(ctx context.Context) error {
			return as.Delete(ctx, object(machines, "MachineGroup", f.Namespace, set))
		}},
		"ANodeInventory": {component, "nodeinventories are written only by Drover and Crossplane", func(ctx context.Context) error {
			return as.Create(ctx, object(clusters, "NodeInventory", f.Namespace, "evil", "spec", map[string]any{}))
		}},
		"AMachineClass": {operator, "machineclasses are for operators: bind the ClusterRole drover:operator", func(ctx context.Context) error {
			return as.Create(ctx, object(machines, "MachineClass", f.Namespace, "huge", "spec", map[string]any{"provider": "local"}))
		}},
		"TheDeletionOfAMachineClass": {operator, "machineclasses", func(ctx context.Context) error { return as.Delete(ctx, class) }},
		"AConfigurationOfATargetCluster": {operator, "providerconfigs are for operators", func(ctx context.Context) error {
			return as.Create(ctx, object(clusters, "ProviderConfig", f.Namespace, "evil", "spec", map[string]any{"credentials": map[string]any{
				"source": "Secret", "secretRef": map[string]any{"name": "evil", "key": "kubeconfig"},
			}}))
		}},
		"AConfigurationOfAnAccount": {operator, "providerconfigs are for operators", func(ctx context.Context) error {
			return as.Create(ctx, object(local, "ProviderConfig", f.Namespace, "evil", "spec", map[string]any{"credentials": map[string]any{
				"source": "Secret", "secretRef": map[string]any{"name": "evil", "key": "credentials"},
			}}))
		}},
		"AMinimumThatIsNoNumber": {sizes, `metadata.annotations[cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size]: invalid value "few": must be an integer from 0 to 99999`, func(ctx context.Context) error {
			return as.Patch(ctx, pool, sizesOf("cluster.x-k8s.io", "few", "3"))
		}},
		"ANegativeMaximum": {sizes, `-max-size]: invalid value "-1": must be an integer from 0 to 99999`, func(ctx context.Context) error {
			return as.Patch(ctx, pool, sizesOf("machine.drover.dev", "0", "-1"))
		}},
		"AMinimumAboveTheMaximum": {sizes, `-min-size]: invalid value "4": must be an integer from 0 to that of machine.drover.dev/cluster-api-autoscaler-node-group-max-size, 3`, func(ctx context.Context) error {
			return as.Patch(ctx, pool, sizesOf("machine.drover.dev", "4", "3"))
		}},
		"AMinimumWithoutAMaximum": {sizes, "which is not set: 0", func(ctx context.Context) error {
			return as.Patch(ctx, pool, patch(`{"metadata":{"annotations":{"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size":"1"}}}`))
		}},
		"TheNameOfAnotherUserInARequest": {"drover-requesters", `metadata.annotations[machine.drover.dev/replace-requested-by]: invalid value "alice": must be the name of the user that sets it`, func(ctx context.Context) error {
			return as.Patch(ctx, object(machines, "Machine", f.Namespace, "victim"), patch(`{"metadata":{"annotations":{"machine.drover.dev/replace-requested-by":"alice"}}}`))
		}},
		"ASetWithSizesThatItIsCreatedWith": {sizes, "must be an integer from 0 to 99999", func(ctx context.Context) error {
			md := f.Deployment("sized", 0, 1, 0)
			md.Annotations = map[string]string{"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "1e3"}
			return as.Create(ctx, md)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.try(t.Context())
			if err == nil || !strings.Contains(err.Error(), "'"+tc.policy+"'") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one of the policy %s with %q", err, tc.policy, tc.want)
			}
		})
	}

	collector := object(machines, "OrphanCollector", "", "evil", "spec", map[string]any{"policy": "Delete"})
	t.Run("NoRightInANamespaceGrantsAnOrphanCollector", func(t *testing.T) {
		refused(t, as.Create(t.Context(), collector.DeepCopy()), "orphancollectors.machine.drover.dev", "at the cluster scope")
	})
	t.Run("AnEditorOfTheWholeClusterIsRefusedWhatIsForOperators", func(t *testing.T) {
		editor, operators := everywhere(t, f, "crossplane-edit"), everywhere(t, f, "drover:operator")
		patience.Eventually(t, func(ctx context.Context) string {
			err := editor.Create(ctx, collector.DeepCopy())
			if err == nil || !strings.Contains(err.Error(), "'drover-operator-kinds'") {
				return fmt.Sprintf("error %v, want one of the policy", err)
			}
			return ""
		})
		must(t, operators.Create(t.Context(), collector.DeepCopy(), client.DryRunAll))
		class := f.ClusterClass("huge-"+f.Namespace, "*")
		refused(t, editor.Create(t.Context(), class.DeepCopy()), "'drover-operator-kinds'", "clustermachineclasses are for operators: bind the ClusterRole drover:operator")
		must(t, operators.Create(t.Context(), class.DeepCopy(), client.DryRunAll))
		// Like all providers, Crossplane may write all ConfigMaps.
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machinev1alpha1.NamespaceOfInstallations, Name: machinev1alpha1.ConfigMapOfInstallations}}
		forged := patch(`{"data":{"another-that-runs":"Lost"}}`)
		provider := f.Control.As(t, "system:serviceaccount:"+machinev1alpha1.NamespaceOfInstallations+":crossplane", "system:serviceaccounts", "system:serviceaccounts:"+machinev1alpha1.NamespaceOfInstallations)
		refused(t, provider.Patch(t.Context(), record.DeepCopy(), forged), "'drover-installations'", "has no right to update installations")
		refused(t, provider.Delete(t.Context(), record.DeepCopy()), "'drover-installations'", "has no right to delete installations")
		must(t, f.Client.Patch(t.Context(), record.DeepCopy(), forged, client.DryRunAll))
		another := record.DeepCopy()
		another.Name = "another"
		must(t, provider.Create(t.Context(), another, client.DryRunAll))
	})
	// In a kubeadm cluster, the controllers of Kubernetes have these accounts.
	for _, controller := range []string{"generic-garbage-collector", "namespace-controller"} {
		t.Run("The"+controller+"MayDeleteWhatHasNoOwner", func(t *testing.T) {
			kube := f.Control.As(t, "system:serviceaccount:kube-system:"+controller, "system:serviceaccounts", "system:serviceaccounts:kube-system")
			for _, o := range []client.Object{object(machines, "MachineGroup", f.Namespace, set), object(local, "VirtualMachine", f.Namespace, vm), class} {
				must(t, kube.Delete(t.Context(), o, client.DryRunAll))
			}
		})
	}
	t.Run("WhatIsItsOwnItMayWrite", func(t *testing.T) {
		own := "system:serviceaccount:" + f.Namespace + ":tenant-crossplane-edit"
		must(t, as.Patch(t.Context(), victim.machine(t), patch(`{"metadata":{"annotations":{"machine.drover.dev/replace-requested-by":"`+own+`"}}}`)))
		must(t, as.Patch(t.Context(), pool, sizesOf("machine.drover.dev", "0", "3")))
		must(t, as.Patch(t.Context(), pool, sizesOf("cluster.x-k8s.io", "3", "3")))
		must(t, as.Patch(t.Context(), pool, patch(`{"spec":{"replicas":1}}`)))
		f.AwaitDeployment(t, "pool")
		must(t, as.Delete(t.Context(), victim.machine(t)))
		patience.Eventually(t, victim.gone, f.Describe)
		must(t, as.Delete(t.Context(), pool))
		f.AwaitNothing(t)
	})
}

// TestTheAccountOfATargetClusterMayWriteJoinTokensOnly checks the writes to kube-system by the
// account of a target cluster and by that of provider-drover in its own cluster.
func TestTheAccountOfATargetClusterMayWriteJoinTokensOnly(t *testing.T) {
	t.Parallel()
	for user, c := range map[string]*kit.Cluster{
		"system:serviceaccount:drover-system:drover":              plane.Target,
		"system:serviceaccount:crossplane-system:provider-drover": plane.Control,
	} {
		t.Run(user, func(t *testing.T) {
			as := c.As(t, user, "system:serviceaccounts")
			foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, GenerateName: "foreign-"}}
			must(t, c.Client.Create(t.Context(), foreign))
			t.Cleanup(func() { _ = c.Client.Delete(context.Background(), foreign) })

			for name, tc := range map[string]struct {
				change func(*corev1.Secret)
				want   string
			}{
				"ATokenOfAServiceAccount": {func(s *corev1.Secret) {
					s.Type, s.Data = corev1.SecretTypeServiceAccountToken, nil
					s.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
				}, `type: invalid value "kubernetes.io/service-account-token"`},
				"ASecretOfNoType":          {func(s *corev1.Secret) { s.Type = "" }, `type: invalid value "Opaque"`},
				"ATokenWithoutLabels":      {func(s *corev1.Secret) { s.Labels = nil }, "metadata.labels: "},
				"ATokenWithOneLabel":       {func(s *corev1.Secret) { delete(s.Labels, clusterv1alpha1.LabelConfig) }, "metadata.labels: "},
				"ATokenThatNeverExpires":   {func(s *corev1.Secret) { delete(s.Data, bootstrapapi.BootstrapTokenExpirationKey) }, "data.expiration: "},
				"ASecretOfAnyNameAndType":  {func(s *corev1.Secret) { s.Name, s.Type = "certs", "example.org/any" }, `type: invalid value "example.org/any"`},
				"ATokenOfAnyName":          {func(s *corev1.Secret) { s.Name = "token-any" }, `metadata.name: invalid value "token-any"`},
				"ATokenOfAConfusableThing": {func(s *corev1.Secret) { s.Name = "bootstrap-tokens" }, `metadata.name: invalid value "bootstrap-tokens"`},
			} {
				t.Run(name, func(t *testing.T) {
					s := joinToken("refuse")
					tc.change(s)
					refused(t, as.Create(t.Context(), s), "'drover-join-tokens'", tc.want)
				})
			}
			t.Run("AChangeOfAForeignSecret", func(t *testing.T) {
				s := foreign.DeepCopy()
				s.Data = map[string][]byte{"a": []byte("b")}
				refused(t, as.Update(t.Context(), s), "'drover-join-tokens'", `type: invalid value "Opaque"`)
			})
			t.Run("TheDeletionOfAForeignSecret", func(t *testing.T) {
				refused(t, as.Delete(t.Context(), foreign), "'drover-join-tokens'", `type: invalid value "Opaque"`)
			})
			t.Run("AForeignTokenThatIsMadeItsOwn", func(t *testing.T) {
				s := joinToken("foreig")
				s.Labels = nil
				must(t, c.Client.Create(t.Context(), s))
				t.Cleanup(func() { _ = c.Client.Delete(context.Background(), s) })
				own := s.DeepCopy()
				own.Labels = joinToken("foreig").Labels
				refused(t, as.Update(t.Context(), own), "'drover-join-tokens'", "metadata.labels: ")
			})
			t.Run("AJoinTokenMayBeWrittenAndDeleted", func(t *testing.T) {
				s := joinToken("permit")
				must(t, as.Create(t.Context(), s))
				s.Data[bootstrapapi.BootstrapTokenDescriptionKey] = []byte("renewed")
				must(t, as.Update(t.Context(), s))
				must(t, as.Delete(t.Context(), s))
			})
		})
	}
}

// joinToken with labels of no existing Machine or configuration, so that Drover does not delete
// it.
func joinToken(id string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: bootstrapapi.BootstrapTokenSecretPrefix + id, Labels: map[string]string{
			clusterv1alpha1.LabelJoinToken: "no-machine", clusterv1alpha1.LabelConfig: "no-configuration",
		}},
		Type: bootstrapapi.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			bootstrapapi.BootstrapTokenIDKey:         []byte(id),
			bootstrapapi.BootstrapTokenSecretKey:     []byte("0123456789abcdef"),
			bootstrapapi.BootstrapTokenExpirationKey: []byte("2999-01-01T00:00:00Z"),
		},
	}
}

// TestTheShippedPoliciesAreApplied compares the policies of this package's clusters with the
// files.
func TestTheShippedPoliciesAreApplied(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		cluster *kit.Cluster
		file    string
	}{
		{plane.Control, localplane.ControlPolicies}, {plane.Control, localplane.TargetPolicies}, {plane.Target, localplane.TargetPolicies},
	} {
		b, err := os.ReadFile(filepath.Join(kit.Root(), at.file))
		must(t, err)
		n := 0
		for _, doc := range bytes.Split(b, []byte("\n---\n")) {
			shipped := &unstructured.Unstructured{}
			must(t, yaml.Unmarshal(doc, &shipped.Object))
			live := shipped.DeepCopy()
			must(t, at.cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(shipped), live))
			// The API server adds its defaults to the result of a dry run.
			shipped.SetName("dry-run-" + shipped.GetName())
			must(t, at.cluster.Client.Create(t.Context(), shipped, client.DryRunAll))
			if d := cmp.Diff(shipped.Object["spec"], live.Object["spec"]); d != "" {
				t.Errorf("%s %s is not that of %s (-file +live):\n%s", live.GetKind(), live.GetName(), at.file, d)
			}
			n++
		}
		if n == 0 {
			t.Errorf("%s has no policy", at.file)
		}
	}
}

func setOf(t *testing.T, f kit.Fleet, deployment string) string {
	t.Helper()
	sets := &machinev1alpha1.MachineSetList{}
	must(t, f.Client.List(t.Context(), sets, client.InNamespace(f.Namespace), client.MatchingLabels{machinev1alpha1.LabelDeployment: deployment}))
	if len(sets.Items) != 1 {
		t.Fatalf("MachineSets %v", sets.Items)
	}
	return sets.Items[0].Name
}

// object of any kind, with pairs of fields and values.
func object(apiVersion, kind, namespace, name string, fields ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for i := 0; i+1 < len(fields); i += 2 {
		u.Object[fields[i].(string)] = fields[i+1]
	}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func withAnnotation(u *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	u.SetAnnotations(map[string]string{key: value})
	return u
}

func patch(json string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(json))
}

// sizesOf returns a patch with the minimum and maximum sizes of a pool for the
// cluster-autoscaler.
func sizesOf(group, minimum, maximum string) client.Patch {
	const key = "/cluster-api-autoscaler-node-group-"
	return patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%q}}}`, group+key+"min-size", minimum, group+key+"max-size", maximum))
}

func refused(t *testing.T, err error, want ...string) {
	t.Helper()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error %v, want %q", err, w)
		}
	}
}
