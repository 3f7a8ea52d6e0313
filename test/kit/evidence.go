package kit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/internal/names"
)

// TokenGrace is the time that a process of Drover may run after the registration of a Node
// without deleting its join token. If the process is killed before, its successor deletes the
// token.
const TokenGrace = time.Minute

// Evidence is the history of a fleet's Machines in a separate target cluster: the records of both
// API servers and of the cloud. It is read afterwards, so it has every moment, not only the
// moments at which a test polled.
type Evidence struct {
	Namespace string
	// Writes to both clusters.
	Writes []Write
	// VMs is the history of the fleet's VMs.
	VMs []localcloud.Change
	// Machines that ever existed: their names by their UIDs.
	Machines map[types.UID]string
	// Kills are the times at which a process of Drover was killed.
	Kills []time.Time
}

// Broken returns the broken guarantees, empty if the evidence shows none:
//
//   - a Machine has one VM in its life, and a VM has one Machine,
//   - a Machine gets one join token in its life. Once its Node has joined, the first process
//     that runs for TokenGrace deletes the token, and no process creates it again,
//   - a VM is deleted after its Node was cordoned, each pod on it was evicted and ended, and
//     the Node was deleted,
//   - no pod is deleted in violation of its PodDisruptionBudget, and no budget is ever exceeded.
//
// Fleet.Left checks that no objects are left at the end.
func (e Evidence) Broken() []string {
	e.Writes = slices.Clone(e.Writes)
	slices.SortStableFunc(e.Writes, func(a, b Write) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp)
	})
	return slices.Concat(e.vms(), e.tokens(), e.drains(), e.budgets())
}

// changes of a kind, one per VM.
func (e Evidence) changes(kind localcloud.ChangeKind) []localcloud.Change {
	return slices.DeleteFunc(slices.Clone(e.VMs), func(c localcloud.Change) bool { return c.Kind != kind })
}

// Created counts all VMs that were created.
func (e Evidence) Created() int { return len(e.changes(localcloud.ChangeCreated)) }

func (e Evidence) vms() []string {
	var broken []string
	of := map[types.UID][]string{}
	for _, c := range e.changes(localcloud.ChangeCreated) {
		uid := types.UID(c.Tags[machinev1alpha1.TagMachineUID])
		if _, ok := e.Machines[uid]; !ok {
			broken = append(broken, fmt.Sprintf("VM %s (%s) was created for the Machine with UID %q, which never existed", c.VM, c.Name, uid))
		}
		of[uid] = append(of[uid], c.VM)
	}
	for _, uid := range slices.Sorted(maps.Keys(of)) {
		if len(of[uid]) > 1 {
			broken = append(broken, fmt.Sprintf("Machine %s (%s) had %d VMs: %s", e.Machines[uid], uid, len(of[uid]), strings.Join(of[uid], ", ")))
		}
	}
	return broken
}

// mayCount reports whether a write may have been carried out. An interrupted creation does not
// count: if the object is missing, the next process creates it. An interrupted deletion, patch or
// eviction counts: if it was carried out, the next process does not repeat it. If it was not, a
// later request is accepted and counts, or the object is left at the end.
func (w Write) mayCount() bool {
	isCreation := w.Verb == "create" && w.ObjectRef.Subresource == ""
	return w.IsAccepted() || w.IsByDrover() && w.IsInterrupted() && !isCreation
}

// longestLife of a process between two times.
func (e Evidence) longestLife(from, to time.Time) time.Duration {
	longest := time.Duration(0)
	for _, killed := range append(slices.SortedFunc(slices.Values(e.Kills), time.Time.Compare), to) {
		if killed.Before(from) || killed.After(to) {
			continue
		}
		longest, from = max(longest, killed.Sub(from)), killed
	}
	return longest
}

// A tokenLife is the history of a Machine's join token.
type tokenLife struct {
	machine                  string
	created, joined, deleted time.Time
}

func (e Evidence) tokens() []string {
	var broken []string
	breaks := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	bySecret, byNode := map[string]*tokenLife{}, map[string]*tokenLife{}
	for uid, name := range e.Machines {
		l := &tokenLife{machine: name}
		bySecret[bootstraputil.BootstrapTokenSecretName(names.TokenID(uid))] = l
		byNode[names.OfMachine(name, uid)] = l
	}
	for _, w := range e.Writes {
		at, name := w.RequestReceivedTimestamp, w.ObjectRef.Name
		if !w.Target || !w.mayCount() {
			continue
		}
		if w.Path() == "nodes" && w.Verb == "create" && byNode[name] != nil {
			byNode[name].joined = at
		}
		if w.Path() != "secrets" || w.ObjectRef.Namespace != metav1.NamespaceSystem || !strings.HasPrefix(name, "bootstrap-token-") {
			continue
		}
		l := bySecret[name]
		switch {
		case l == nil && w.Verb == "create":
			breaks("join token %s was made for no Machine", name)
		case l == nil:
		case w.Verb == "create" && !l.joined.IsZero():
			breaks("join token %s was made %s after the Node of Machine %s had joined", name, at.Sub(l.joined), l.machine)
			l.created, l.deleted = at, time.Time{}
		case w.Verb == "create" && !l.created.IsZero():
			breaks("join token %s of Machine %s was made again %s after the first one", name, l.machine, at.Sub(l.created))
			l.created, l.deleted = at, time.Time{}
		case w.Verb == "create":
			l.created = at
		case w.Verb == "delete":
			l.deleted = at
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bySecret)) {
		switch l := bySecret[name]; {
		case l.created.IsZero():
		case l.deleted.IsZero() && !l.joined.IsZero():
			breaks("join token %s of Machine %s was never deleted, and its Node had joined", name, l.machine)
		case l.deleted.IsZero():
			breaks("join token %s of Machine %s was never deleted", name, l.machine)
		case !l.joined.IsZero() && e.longestLife(l.joined, l.deleted) > TokenGrace:
			breaks("join token %s of Machine %s was deleted %s after its Node had joined, and a process ran for %s of it: allowed are %s",
				name, l.machine, l.deleted.Sub(l.joined), e.longestLife(l.joined, l.deleted), TokenGrace)
		}
	}
	return broken
}

// A nodeLife is the history of a Node, and of the pods that ran on it.
type nodeLife struct {
	cordoned, deleted time.Time
	byDrover          bool
	pods              map[string]*podLife
}

type podLife struct{ bound, evicted, gone time.Time }

func (e Evidence) nodes() map[string]*nodeLife {
	nodes, pods := map[string]*nodeLife{}, map[string]*podLife{}
	for _, w := range e.Writes {
		if !w.Target || !w.mayCount() {
			continue
		}
		at, name := w.RequestReceivedTimestamp, w.ObjectRef.Name
		node, pod := nodes[name], pods[name]
		switch w.Verb + " " + w.Path() {
		case "create nodes":
			nodes[name] = &nodeLife{pods: map[string]*podLife{}}
		case "patch nodes":
			if node != nil && node.cordoned.IsZero() && IsCordon(w) {
				node.cordoned = at
			}
		case "delete nodes":
			if node != nil {
				node.deleted, node.byDrover = at, w.IsByDrover()
			}
		case "create pods/binding":
			b := &corev1.Binding{}
			if w.ObjectRef.Namespace != e.Namespace || json.Unmarshal(w.RequestObject, b) != nil || nodes[b.Target.Name] == nil {
				continue
			}
			pods[name] = &podLife{bound: at}
			nodes[b.Target.Name].pods[name] = pods[name]
		case "create pods/eviction":
			if pod != nil && pod.evicted.IsZero() && w.IsByDrover() {
				pod.evicted = at
			}
		case "delete pods":
			// The kubelet deletes an ended pod.
			if pod != nil && strings.HasPrefix(w.User.Username, "system:node:") {
				pod.gone = at
			}
		}
	}
	return nodes
}

// IsCordon reports whether a patch makes a Node unschedulable.
func IsCordon(w Write) bool {
	n := struct{ Spec struct{ Unschedulable bool } }{}
	return json.Unmarshal(w.RequestObject, &n) == nil && n.Spec.Unschedulable
}

func (e Evidence) drains() []string {
	var broken []string
	nodes := e.nodes()
	for _, c := range e.changes(localcloud.ChangeTerminating) {
		n := nodes[c.Name]
		if n == nil {
			continue // The Node never joined.
		}
		breaks := func(format string, args ...any) {
			broken = append(broken, fmt.Sprintf("VM %s: %s", c.Name, fmt.Sprintf(format, args...)))
		}
		switch {
		case n.deleted.IsZero() || n.deleted.After(c.At):
			breaks("it was deleted before its Node")
		case !n.byDrover:
			breaks("its Node was deleted by another client than Drover")
		}
		for _, name := range slices.Sorted(maps.Keys(n.pods)) {
			p := n.pods[name]
			switch {
			case n.cordoned.IsZero() || n.cordoned.After(c.At):
				breaks("it was deleted, its Node ran pod %s and was never cordoned", name)
			case p.bound.After(n.cordoned):
				// The scheduler had not observed the cordon. A drain may miss such a pod.
			case !p.gone.IsZero() && p.gone.Before(n.cordoned):
			case p.evicted.IsZero() || p.evicted.After(c.At):
				breaks("it was deleted, and pod %s was not evicted before", name)
			case p.evicted.Before(n.cordoned):
				breaks("pod %s was evicted before its Node was cordoned", name)
			case p.gone.IsZero() || p.gone.After(c.At):
				breaks("it was deleted, and pod %s was evicted and not gone yet", name)
			case !n.deleted.IsZero() && p.gone.After(n.deleted):
				breaks("its Node was deleted before pod %s was gone", name)
			}
		}
	}
	return broken
}

// Evicted counts the pods that were evicted from Nodes of deleted VMs: without evictions, the
// evidence shows nothing about drains.
func (e Evidence) Evicted() int {
	n, nodes := 0, e.nodes()
	for _, c := range e.changes(localcloud.ChangeTerminating) {
		if nodes[c.Name] == nil {
			continue
		}
		for _, p := range nodes[c.Name].pods {
			if !p.evicted.IsZero() {
				n++
			}
		}
	}
	return n
}

func (e Evidence) budgets() []string {
	var broken []string
	wasHealthy := map[string]bool{}
	for _, w := range e.Writes {
		if !w.Target || !w.mayCount() || w.ObjectRef.Namespace != e.Namespace {
			continue
		}
		at, name := w.RequestReceivedTimestamp.Format(time.TimeOnly), w.ObjectRef.Name
		switch w.Path() {
		case "pods":
			if w.Verb == "delete" && w.IsByDrover() {
				broken = append(broken, fmt.Sprintf("at %s pod %s was deleted, and not evicted", at, name))
			}
		case "poddisruptionbudgets/status":
			b := policyv1.PodDisruptionBudget{}
			if json.Unmarshal(w.RequestObject, &b) != nil {
				continue
			}
			healthy, want := b.Status.CurrentHealthy, b.Status.DesiredHealthy
			if wasHealthy[name] && healthy < want {
				broken = append(broken, fmt.Sprintf("at %s %d pods of PodDisruptionBudget %s were healthy, at least %d must be", at, healthy, name, want))
			}
			wasHealthy[name] = wasHealthy[name] || want > 0 && healthy >= cmp.Or(b.Status.ExpectedPods, want)
		}
	}
	return broken
}
