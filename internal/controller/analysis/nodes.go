package analysis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// newNodes and oldNodes are how many Nodes of the new template and of old ones are looked at. The pods of each are a
	// list of the target cluster.
	newNodes, oldNodes = 50, 20
	// podsPerPage and podsPerNode bound the lists of pods.
	podsPerPage, podsPerNode = 250, 2000
	// notReadyFor is for how long a pod must not have been Ready to count.
	notReadyFor = 2 * time.Minute
)

// A cluster has the parts of a target cluster that the analysis needs.
type cluster struct {
	kube kubernetes.Interface
	// node reads from a cache the Node of a Machine.
	node func(ctx context.Context, name, uid string) (*corev1.Node, error)
	// classify returns the class of an error of a call, which repeats no text of the cluster.
	classify func(error) error
}

// counts of what was found on Nodes. Nothing else of the pods is kept.
type counts struct {
	nodes, of                                              int32
	pods                                                   int32
	unhealthy, crashing, pulling, notReady, restarted, out int32
}

// count the problems on the Nodes of Machines.
func (r *reconciler) count(ctx context.Context, machines []*machinev1alpha1.Machine, most int, since time.Time) (counts, error) {
	c := counts{of: int32(len(machines))}
	for _, m := range machines[:min(len(machines), most)] {
		target, err := r.connect(ctx, m)
		if err != nil {
			return c, err
		}
		ref := m.Status.NodeRef
		node, err := target.node(ctx, ref.Name, string(ref.UID))
		if err != nil {
			return c, err
		}
		if node == nil {
			return c, fmt.Errorf("the Node %s of the Machine %s does not exist", ref.Name, m.Name)
		}
		c.nodes++
		if !isHealthy(node) {
			c.unhealthy++
		}
		if err := c.countPods(ctx, target, node.Name, r.now(), since); err != nil {
			return c, err
		}
	}
	return c, nil
}

// isHealthy reports whether all conditions of a Node are healthy. Those whose types end with Ready are healthy if they are
// True, and all others report a problem if they are True, as Kubernetes and node-problem-detector have them.
func isHealthy(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		if strings.HasSuffix(string(c.Type), "Ready") {
			return c.Status != corev1.ConditionTrue
		}
		return c.Status == corev1.ConditionTrue
	})
}

// countPods of a Node, by pages.
func (c *counts) countPods(ctx context.Context, target cluster, node string, now, since time.Time) error {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(), Limit: podsPerPage}
	for seen := 0; ; {
		page, err := target.kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return target.classify(err)
		}
		for i := range page.Items {
			// A server may not know the selector.
			if page.Items[i].Spec.NodeName == node {
				c.add(&page.Items[i], now, since)
			}
		}
		if seen += len(page.Items); page.Continue == "" || seen >= podsPerNode {
			return nil
		}
		options.Continue = page.Continue
	}
}

// add a pod to the counts. Pods that are complete or being deleted do not count.
func (c *counts) add(p *corev1.Pod, now, since time.Time) {
	evicted := p.Status.Phase == corev1.PodFailed && p.Status.Reason == "Evicted"
	if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed && !evicted {
		return
	}
	c.pods++
	if evicted {
		c.out++
		return
	}
	containers := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	is := func(found func(corev1.ContainerStatus) bool) int32 {
		if slices.ContainsFunc(containers, found) {
			return 1
		}
		return 0
	}
	c.crashing += is(func(s corev1.ContainerStatus) bool {
		return waits(s, "CrashLoopBackOff", "RunContainerError", "CreateContainerError", "CreateContainerConfigError", "StartError")
	})
	c.pulling += is(func(s corev1.ContainerStatus) bool {
		return waits(s, "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable")
	})
	c.restarted += is(func(s corev1.ContainerStatus) bool {
		ended := s.LastTerminationState.Terminated
		return ended != nil && s.RestartCount > 0 && !ended.FinishedAt.Time.Before(since)
	})
	if isNotReady(p, now) {
		c.notReady++
	}
}

func waits(s corev1.ContainerStatus, reasons ...string) bool {
	return s.State.Waiting != nil && slices.Contains(reasons, s.State.Waiting.Reason)
}

// isNotReady reports whether a pod has not been Ready for some time.
func isNotReady(p *corev1.Pod, now time.Time) bool {
	since := p.CreationTimestamp
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return false
		case c.Type == corev1.PodReady:
			since = c.LastTransitionTime
		}
	}
	return now.Sub(since.Time) >= notReadyFor
}

// A limited number.
type limited struct {
	name     string
	limit    machinev1alpha1.AnalysisLimit
	new, old int32
	// ofNew and ofOld are how many there are in all.
	ofNew, ofOld int32
	unit         string
}

// share in percent, 0 of none.
func share(n, of int32) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(n) / float64(of)
}

// isExceeded reports whether the number is above one of its limits.
func (l limited) isExceeded() bool {
	if m := l.limit.Max; m != nil {
		if m.Type == intstr.Int && l.new > m.IntVal {
			return true
		}
		percent, err := strconv.ParseFloat(strings.TrimSuffix(m.StrVal, "%"), 64)
		if m.Type == intstr.String && (err != nil || share(l.new, l.ofNew) > percent) {
			return true
		}
	}
	if p := l.limit.MaxAboveOldPercent; p != nil && share(l.new, l.ofNew) > share(l.old, l.ofOld)+float64(*p) {
		return true
	}
	return false
}

// limitText is the limit in words.
func (l limited) limitText() string {
	var out []string
	if m := l.limit.Max; m != nil {
		out = append(out, "at most "+m.String())
	}
	if p := l.limit.MaxAboveOldPercent; p != nil {
		out = append(out, fmt.Sprintf("at most %d percentage points above the old Nodes", *p))
	}
	return strings.Join(out, " and ")
}

func (l limited) text() string {
	return fmt.Sprintf("%s: %d of %d %s on the new Nodes, %d of %d on the old ones; allowed is %s", l.name, l.new, l.ofNew, l.unit, l.old, l.ofOld, l.limitText())
}

func (l limited) number() machinev1alpha1.AnalysisNumber {
	return machinev1alpha1.AnalysisNumber{
		Name: l.name, New: strconv.Itoa(int(l.new)), NewTotal: l.ofNew, Old: strconv.Itoa(int(l.old)), OldTotal: l.ofOld,
		Limit: l.limitText(), Exceeded: l.isExceeded(),
	}
}

// numbersOf pairs the counts with their limits.
func numbersOf(a *machinev1alpha1.NodeAnalysis, n, o counts) []limited {
	pods := func(name string, limit machinev1alpha1.AnalysisLimit, inNew, inOld int32) limited {
		return limited{name, limit, inNew, inOld, n.pods, o.pods, "pods"}
	}
	return []limited{
		{"unhealthyNodes", a.UnhealthyNodes, n.unhealthy, o.unhealthy, n.nodes, o.nodes, "Nodes"},
		pods("crashingPods", a.CrashingPods, n.crashing, o.crashing),
		pods("imagePullFailures", a.ImagePullFailures, n.pulling, o.pulling),
		pods("notReadyPods", a.NotReadyPods, n.notReady, o.notReady),
		pods("restartedPods", a.RestartedPods, n.restarted, o.restarted),
		pods("evictedPods", a.EvictedPods, n.out, o.out),
	}
}

// compare the counts of new and old Nodes.
func compare(a *machinev1alpha1.NodeAnalysis, n, o counts) measurement {
	switch {
	case n.nodes == 0:
		return inconclusive("no Machine of the new template has a Node")
	case n.pods < a.MinPods:
		return inconclusive(fmt.Sprintf("the Nodes of the new template have %d pods: spec.nodes.minPods is %d", n.pods, a.MinPods))
	}
	m := measurement{passed: true}
	var exceeded []string
	for _, l := range numbersOf(a, n, o) {
		m.numbers = append(m.numbers, l.number())
		if l.isExceeded() {
			m.passed = false
			exceeded = append(exceeded, l.text())
		}
	}
	if m.message = strings.Join(exceeded, "; "); m.passed {
		m.message = fmt.Sprintf("all limits hold for %d pods on %d of %d new Nodes, compared with %d pods on %d of %d old ones", n.pods, n.nodes, n.of, o.pods, o.nodes, o.of)
	}
	return m
}

// measureNodes compares the Nodes of the Machines.
func (r *reconciler) measureNodes(ctx context.Context, a *machinev1alpha1.NodeAnalysis, f fleet, since time.Time) measurement {
	n, err := r.count(ctx, f.new, newNodes, since)
	if err != nil {
		return inconclusive(err.Error())
	}
	o, err := r.count(ctx, f.old, oldNodes, since)
	if err != nil {
		return inconclusive(err.Error())
	}
	return compare(a, n, o)
}

// byName sorts Machines, so that each measurement looks at the same ones.
func byName(a, b *machinev1alpha1.Machine) int { return cmp.Compare(a.Name, b.Name) }
