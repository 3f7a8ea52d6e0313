package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/gzipb64"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/test/patience"
)

// A life is one Machine of a deployment that several cases use one after the other.
type life struct {
	world   *world
	md      *machinev1alpha1.MachineDeployment
	machine *machinev1alpha1.Machine
	// rebooted is the account if the case Reboot ran.
	rebooted RebootAccount
}

func newLife(t *testing.T, c Cloud) *life {
	t.Helper()
	l := &life{world: newWorld(t, c)}
	l.md = l.world.deployment("workers", 1)
	l.world.Create(t, l.md)
	l.world.AwaitDeployment(t, l.md.Name)
	machines, err := l.world.Machines(t.Context())
	must(t, err)
	l.machine = &machines[0]
	return l
}

// wrongField tests two invalid classes: one with an unknown field, and one with a value of a wrong
// type.
func wrongField(t *testing.T, c Cloud, _ *life) {
	w := newWorld(t, c)
	for name, change := range map[string]func(map[string]any) string{
		"unknown": func(f map[string]any) string {
			f["flavour"] = "sweet"
			return "flavour"
		},
		"mistyped": func(f map[string]any) string {
			field := slices.Sorted(maps.Keys(f))[0]
			f[field] = ofOtherType(f[field])
			return field
		},
	} {
		forProvider := map[string]any{}
		must(t, json.Unmarshal(w.class.Spec.ForProvider.Raw, &forProvider))
		field := change(forProvider)
		raw, err := json.Marshal(forProvider)
		must(t, err)
		class := w.class.DeepCopy()
		class.Name, class.Spec.ForProvider = name, &runtime.RawExtension{Raw: raw}
		w.Create(t, class)
		md := w.deployment(name, 1)
		md.Spec.Template.Spec.ClassRef.Name = class.Name
		w.Create(t, md)
		patience.Eventually(t, func(ctx context.Context) string {
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
				return err.Error()
			}
			return reported(md.Status.Conditions, "Valid", "ForProviderInvalid", "forProvider."+field)
		})
	}
	w.Throughout(t, func(ctx context.Context) string {
		l := &unstructured.UnstructuredList{}
		kind := w.account.VMKind()
		l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := w.Client.List(ctx, l, client.InNamespace(w.Namespace)); err != nil || len(l.Items) > 0 {
			return fmt.Sprintf("there are %d of %s, %v", len(l.Items), kind.Kind, err)
		}
		return w.noVMs(ctx)
	})
	w.end(t, w.deployment("unknown", 1), w.deployment("mistyped", 1))
}

func ofOtherType(v any) any {
	if _, ok := v.(string); ok {
		return map[string]any{}
	}
	return "wrong"
}

func created(t *testing.T, _ Cloud, l *life) {
	m, vm := l.machine, l.world.vm(t, l.machine)
	for tag, want := range map[string]string{
		machinev1alpha1.TagCluster: "default", machinev1alpha1.TagNamespace: m.Namespace,
		machinev1alpha1.TagMachine: m.Name, machinev1alpha1.TagMachineUID: string(m.UID),
	} {
		if vm.Name != "" && (tag == machinev1alpha1.TagMachine || tag == machinev1alpha1.TagMachineUID) {
			want = "" // Each Machine would leave such a tag in the account.
		}
		if vm.Tags[tag] != want {
			t.Errorf("tag %s is %q, want %q", tag, vm.Tags[tag], want)
		}
	}
	if vm.Tags[machinev1alpha1.TagInstallation] == "" {
		t.Error("no tag shows the installation")
	}
	s := &corev1.Secret{}
	must(t, l.world.Client.Get(t.Context(), client.ObjectKey{Namespace: m.Namespace, Name: names.UserData(m.Name, m.UID)}, s))
	rendered := s.Data["userData"]
	if decoded, err := base64.StdEncoding.DecodeString(string(rendered)); err == nil {
		rendered = decoded // The Secret has it as the cloud expects it.
	}
	plain := rendered
	if unpacked, err := gzipb64.Decode(string(s.Data["userData"])); err == nil {
		plain = unpacked // The VMs of the cloud uncompress it.
	}
	if vm.UserData == nil {
		t.Log("the cloud shows user data to nobody: the Node that joined had it")
	} else if string(vm.UserData) != string(rendered) {
		t.Errorf("the VM reads %d bytes of user data, rendered were %d", len(vm.UserData), len(rendered))
	}
	if !strings.HasPrefix(string(plain), "#cloud-config\n") {
		t.Errorf("%d bytes in Secret %s are no cloud-config", len(plain), s.Name)
	}
}

func providerID(t *testing.T, _ Cloud, l *life) {
	l.world.await(t, l.machine, isRunning)
	n := l.world.node(t, l.machine)
	if id := l.machine.Status.ProviderID; id == "" || id != n.Spec.ProviderID {
		t.Errorf("the Machine has %q, its Node %s %q", id, n.Name, n.Spec.ProviderID)
	}
	t.Logf("%s", n.Spec.ProviderID)
}

func addresses(t *testing.T, _ Cloud, l *life) {
	n := l.world.node(t, l.machine)
	has := map[string]bool{}
	for _, a := range l.machine.Status.Addresses {
		has[string(a.Type)+" "+a.Address] = true
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && !has["InternalIP "+a.Address] {
			t.Errorf("the Node has the InternalIP %s, the Machine %v", a.Address, l.machine.Status.Addresses)
		}
	}
	// The addresses of the Node prove nothing: a serving certificate is approved for addresses that
	// the cloud reports.
	patience.Eventually(t, func(ctx context.Context) string {
		requests := &certificatesv1.CertificateSigningRequestList{}
		if err := l.world.Cluster.Client.List(ctx, requests); err != nil {
			return err.Error()
		}
		for _, r := range requests.Items {
			if r.Spec.SignerName == certificatesv1.KubeletServingSignerName && r.Spec.Username == "system:node:"+n.Name && len(r.Status.Certificate) > 0 {
				return ""
			}
		}
		return fmt.Sprintf("Node %s has no serving certificate; the addresses of its Machine are %v", n.Name, l.machine.Status.Addresses)
	})
}
