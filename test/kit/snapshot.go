package kit

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/test/patience"
)

// volatile resources change even if nothing happens, or are requests and not states.
var volatile = map[schema.GroupResource]bool{
	{Resource: "events"}:                                                             true,
	{Group: "events.k8s.io", Resource: "events"}:                                     true,
	{Resource: "componentstatuses"}:                                                  true,
	{Group: "coordination.k8s.io", Resource: "leases"}:                               true,
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}:           true,
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}:                       true,
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}:           true,
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}:                 true,
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "prioritylevelconfigurations"}: true,
}

// A Snapshot has all objects of all clusters of a Plane, and all VMs of its cloud, except those
// that the namespaces of a test own. It compares them with their later versions, byte by byte,
// without these fields:
//
//   - metadata.resourceVersion and metadata.managedFields
//   - of Nodes: status.conditions, the annotation node.alpha.kubernetes.io/ttl and the taints
//     node.kubernetes.io/*, all of which follow from heartbeats
//   - of Pods: status.conditions, which follow from the heartbeat of the Node
//   - of Machines: the condition NodeIdentified, which reports the attacks of other cases
//   - of packages of Crossplane: status.conditions, which follow from the health of their pods
//   - of Secrets: the label kubernetes.io/legacy-token-last-used; of data only a hash is kept
//
// Events, Leases, CertificateSigningRequests, APIServices, CustomResourceDefinitions and the
// objects of API priority and fairness are not compared. A Snapshot is safe for concurrent use.
type Snapshot struct {
	p         *Plane
	resources map[*Cluster][]schema.GroupVersionKind

	mu         sync.Mutex
	namespaces map[string]bool
	nodes      map[string]bool // names of Nodes that the namespaces own, in either cluster
	was        map[string]string
}

// Snapshot waits until all objects are stable, and records all objects of a Plane except those of
// the namespaces. See Disown.
func (p *Plane) Snapshot(t testing.TB, but ...string) *Snapshot {
	t.Helper()
	s := &Snapshot{p: p, resources: map[*Cluster][]schema.GroupVersionKind{}, namespaces: map[string]bool{}, nodes: map[string]bool{}}
	s.Disown(but...)
	for _, c := range p.clusters() {
		kinds, err := listable(c)
		if err != nil {
			t.Fatal(err)
		}
		s.resources[c] = kinds
	}
	var err error
	if s.was, err = s.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	calm := time.Now()
	patience.Eventually(t, func(ctx context.Context) string {
		if changes := s.Changes(ctx); len(changes) > 0 {
			calm = time.Now()
			return "something changes yet: " + strings.Join(changes, "\n")
		}
		if time.Since(calm) < 2*time.Second {
			return "it is not calm for long enough"
		}
		return ""
	})
	return s
}

func (p *Plane) clusters() []*Cluster {
	if p.Target == nil {
		return []*Cluster{p.Control}
	}
	return []*Cluster{p.Control, p.Target}
}

func listable(c *Cluster) ([]schema.GroupVersionKind, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	var out []schema.GroupVersionKind
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range l.APIResources {
			if slices.Contains(r.Verbs, "list") && !volatile[schema.GroupResource{Group: gv.Group, Resource: r.Name}] {
				out = append(out, gv.WithKind(r.Kind))
			}
		}
	}
	return out, nil
}

// Disown excludes namespaces that do not exist yet from the Snapshot. It also excludes the Nodes
// of their Machines, their VMs, their join tokens, and the cluster-scoped objects whose names
// begin with the name of a namespace: a test owns them and may change them. If a namespace is
// created before it is disowned, a concurrent Check reports it as a change.
func (s *Snapshot) Disown(namespaces ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range namespaces {
		s.namespaces[n] = true
	}
}

// DisownNodes excludes Nodes by name.
func (s *Snapshot) DisownNodes(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range names {
		s.nodes[n] = true
	}
}

// Check fails the test if anything changed since the last Check.
func (s *Snapshot) Check(t testing.TB) {
	t.Helper()
	for _, c := range s.Changes(context.WithoutCancel(t.Context())) {
		t.Error("changed: " + c)
	}
}

// Changes since the Snapshot was made. Each is reported once.
func (s *Snapshot) Changes(ctx context.Context) []string {
	now, err := s.take(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, key := range slices.Sorted(maps.Keys(union(s.was, now))) {
		before, was := s.was[key]
		after, is := now[key]
		switch {
		case before == after:
		case !was:
			out = append(out, key+" is new: "+after)
		case !is:
			out = append(out, key+" is gone")
		default:
			out = append(out, key+":\n"+cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
		}
	}
	s.was = now
	return out
}

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func (s *Snapshot) take(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	for c, kinds := range s.resources {
		where := "control cluster"
		if c == s.p.Target {
			where = "target cluster"
		}
		for _, gvk := range kinds {
			l := &unstructured.UnstructuredList{}
			l.SetGroupVersionKind(gvk)
			if err := c.Client.List(ctx, l); err != nil {
				if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
					continue
				}
				return nil, fmt.Errorf("%s, %s: %w", where, gvk, err)
			}
			// Machines are read after the Nodes, so the Machine of each listed Node is known.
			if gvk.Kind == "Node" {
				if err := s.findNodes(ctx); err != nil {
					return nil, err
				}
			}
			for i := range l.Items {
				o := &l.Items[i]
				if s.owns(o) {
					continue
				}
				steady(o)
				text, err := json.MarshalIndent(o.Object, "", " ")
				if err != nil {
					return nil, err
				}
				out[fmt.Sprintf("%s, %s %s/%s", where, gvk.GroupKind(), o.GetNamespace(), o.GetName())] = string(text)
			}
		}
	}
	vms, err := s.p.Cloud.ListVMs(ctx, localcloud.ListVMsOptions{})
	if err != nil {
		return nil, err
	}
	for _, vm := range vms {
		if s.ownsNamespace(vm.Tags[machinev1alpha1.TagNamespace]) {
			continue
		}
		text, err := json.MarshalIndent(vm, "", " ")
		if err != nil {
			return nil, err
		}
		out["cloud, VM "+vm.ID] = string(text)
	}
	return out, nil
}

// findNodes adds the Nodes of the Machines in the disowned namespaces by name: no other Node can
// have their names.
func (s *Snapshot) findNodes(ctx context.Context) error {
	l := &machinev1alpha1.MachineList{}
	if err := s.p.Client.List(ctx, l); err != nil {
		return err
	}
	for i := range l.Items {
		if m := &l.Items[i]; s.ownsNamespace(m.Namespace) {
			s.DisownNodes(names.OfMachine(m.Name, m.UID))
		}
	}
	return nil
}

func (s *Snapshot) ownsNamespace(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.namespaces[name]
}

func (s *Snapshot) owns(o *unstructured.Unstructured) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case o.GetKind() == "Node" && s.nodes[o.GetName()]:
		return true
	case o.GetNamespace() != "" && s.namespaces[o.GetNamespace()]:
		return true
	case o.GetNamespace() == "":
		for n := range s.namespaces {
			if strings.HasPrefix(o.GetName(), n) {
				return true
			}
		}
	case o.GetKind() == "Secret" && o.GetLabels()[clusterv1alpha1.LabelJoinToken] != "":
		for n := range s.namespaces {
			if isTokenOf(o, n) {
				return true
			}
		}
	}
	return false
}

// isTokenOf reports whether a Secret is a join token of a Machine in a namespace.
func isTokenOf(o *unstructured.Unstructured, namespace string) bool {
	s := &corev1.Secret{}
	text, err := o.MarshalJSON()
	if err != nil || json.Unmarshal(text, s) != nil {
		return false
	}
	return strings.Contains(string(s.Data["description"]), namespace+"/")
}

// steady removes the fields that change even if nothing happens: see Snapshot.
func steady(o *unstructured.Unstructured) {
	o.SetResourceVersion("")
	o.SetManagedFields(nil)
	if o.GroupVersionKind().Group == "pkg.crossplane.io" {
		unstructured.RemoveNestedField(o.Object, "status", "conditions")
	}
	switch o.GroupVersionKind() {
	case corev1.SchemeGroupVersion.WithKind("Node"):
		unstructured.RemoveNestedField(o.Object, "status", "conditions")
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", corev1.ObjectTTLAnnotationKey)
		if a := o.GetAnnotations(); len(a) == 0 {
			unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
		}
		taints, _, _ := unstructured.NestedSlice(o.Object, "spec", "taints")
		taints = slices.DeleteFunc(taints, func(t any) bool {
			m, _ := t.(map[string]any)
			key, _ := m["key"].(string)
			return strings.HasPrefix(key, "node.kubernetes.io/")
		})
		_ = unstructured.SetNestedSlice(o.Object, taints, "spec", "taints")
	case machinev1alpha1.MachineGroupVersionKind:
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		conditions = slices.DeleteFunc(conditions, func(c any) bool {
			m, _ := c.(map[string]any)
			return m["type"] == "NodeIdentified"
		})
		_ = unstructured.SetNestedSlice(o.Object, conditions, "status", "conditions")
	case corev1.SchemeGroupVersion.WithKind("Pod"):
		unstructured.RemoveNestedField(o.Object, "status", "conditions")
	case corev1.SchemeGroupVersion.WithKind("Secret"):
		unstructured.RemoveNestedField(o.Object, "metadata", "labels", "kubernetes.io/legacy-token-last-used")
		if len(o.GetLabels()) == 0 {
			unstructured.RemoveNestedField(o.Object, "metadata", "labels")
		}
		data, err := json.Marshal(o.Object["data"])
		if err == nil {
			// A difference is printed, and must not reveal the data of a Secret.
			o.Object["data"] = fmt.Sprintf("%x", sha256.Sum256(data))
		}
	}
}
