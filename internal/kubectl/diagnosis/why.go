package diagnosis

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// consoleLines of an excerpt.
const consoleLines = 12

// An Answer is the output of the command why: cause and remedy first, then facts, then the history.
type Answer struct {
	view.Ref
	State    State     `json:"state"`
	Doing    string    `json:"doing,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
	// Facts of the object and of what belongs to it.
	Facts []Fact `json:"facts,omitempty"`
	// Conditions of the object.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Timeline of events, conditions and milestones, oldest first.
	Timeline []Entry `json:"timeline,omitempty"`
	// Console is the end of the console of the VM of a Machine.
	Console []string `json:"console,omitempty"`
	Unread  []string `json:"unread,omitempty"`
}

// A Fact is a line such as "VM: running".
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// An Entry of a timeline.
type Entry struct {
	Time metav1.Time `json:"time"`
	view.Ref
	// Source is Event, Condition, Milestone or Object.
	Source  string `json:"source"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Count is how often an event was seen.
	Count   int32 `json:"count,omitempty"`
	Warning bool  `json:"warning,omitempty"`
}

// Why explains one object.
func Why(v *view.View, ref view.Ref, now time.Time) (Answer, error) {
	g, ok := groupOf(v, ref, now)
	if !ok {
		return Answer{}, notFound(v, ref)
	}
	a := Answer{Ref: ref, State: g.State, Doing: g.Doing, Findings: g.Findings, Unread: v.Unread}
	b := &answer{Answer: &a, v: v}
	switch ref.Kind {
	case view.NodePool:
		p := v.Pool(ref.Namespace, ref.Name)
		a.Conditions = p.Status.Conditions
		b.counts(g)
		b.object(ref, p)
		for _, d := range v.DeploymentsOf(p) {
			b.deployment(d)
		}
	case view.MachineDeployment:
		d := v.Deployment(ref.Namespace, ref.Name)
		a.Conditions = d.Status.Conditions
		b.counts(g)
		b.deployment(d)
	case view.MachineSet:
		s := v.Set(ref.Namespace, ref.Name)
		a.Conditions = s.Status.Conditions
		b.counts(g)
		b.set(s)
	case view.Machine:
		b.oneMachine(v.Machine(ref.Namespace, ref.Name), now)
	}
	b.conditions()
	slices.SortStableFunc(a.Timeline, func(x, y Entry) int { return x.Time.Compare(y.Time.Time) })
	return a, nil
}

// An answer is built from the top down.
type answer struct {
	*Answer
	v *view.View
}

func (b *answer) fact(name, format string, args ...any) {
	b.Facts = append(b.Facts, Fact{name, fmt.Sprintf(format, args...)})
}

func (b *answer) counts(g Group) {
	c := g.Counts
	b.fact("Machines", "%d desired, %d updated, %d available, %d unhealthy, %d terminating", c.Desired, c.Updated, c.Available, c.Unhealthy, c.Terminating)
	for _, m := range g.Members {
		b.fact(m.Ref.String(), "%s %s: %d desired, %d available", m.Note, m.Version, m.Counts.Desired, m.Counts.Available)
	}
}

// object adds the life and the events of an object.
func (b *answer) object(ref view.Ref, o metav1.Object) {
	b.entry(Entry{Time: o.GetCreationTimestamp(), Ref: ref, Source: "Object", Reason: "Created"})
	if d := o.GetDeletionTimestamp(); d != nil {
		b.entry(Entry{Time: *d, Ref: ref, Source: "Object", Reason: "DeletionRequested"})
	}
	b.events(ref)
}

func (b *answer) events(ref view.Ref) {
	for _, e := range b.v.EventsOf(ref) {
		if !slices.Contains(noise, e.Reason) {
			b.event(ref, e)
		}
	}
}

// noise are events of Crossplane that do not concern Machines.
var noise = []string{"CompositionSelection", "SelectComposition"}

// stepPrefix is what Crossplane writes before the events of a pipeline.
var stepPrefix = regexp.MustCompile(`^Pipeline step "[^"]*": `)

func (b *answer) event(ref view.Ref, e corev1.Event) {
	b.entry(Entry{
		Time: metav1.NewTime(view.EventTime(e)), Ref: ref, Source: "Event", Reason: e.Reason, Message: stepPrefix.ReplaceAllString(e.Message, ""),
		Count: max(e.Count, seriesCount(e)), Warning: e.Type == corev1.EventTypeWarning,
	})
}

func seriesCount(e corev1.Event) int32 {
	if e.Series == nil {
		return 0
	}
	return e.Series.Count
}

func (b *answer) entry(e Entry) {
	if !e.Time.IsZero() {
		b.Timeline = append(b.Timeline, e)
	}
}

func (b *answer) deployment(d *machinev1alpha1.MachineDeployment) {
	b.object(refOf(view.MachineDeployment, d), d)
	b.config(d.Namespace, d.Spec.Template.Spec.ClusterRef)
	for _, s := range b.v.SetsOf(d) {
		b.set(s)
	}
}

func (b *answer) set(s *machinev1alpha1.MachineSet) {
	b.object(refOf(view.MachineSet, s), s)
	for _, m := range b.v.MachinesOf(s) {
		b.warnings(m)
	}
}

// warnings adds the warnings of a Machine: all its events would hide those of its set.
func (b *answer) warnings(m *machinev1alpha1.Machine) {
	for _, e := range b.v.EventsOf(refOf(view.Machine, m)) {
		if e.Type == corev1.EventTypeWarning {
			b.event(refOf(view.Machine, m), e)
		}
	}
}

// config adds the state of the target cluster.
func (b *answer) config(namespace string, ref machinev1alpha1.ClusterReference) {
	kind, name := view.ClusterRef(ref)
	fact := "Target cluster"
	if slices.ContainsFunc(b.Facts, func(f Fact) bool { return f.Name == fact }) {
		return
	}
	c := b.v.ConfigOf(namespace, ref)
	switch {
	case c == nil:
		b.fact(fact, "%s %s: not read", kind, name)
	case c.Missing:
		b.fact(fact, "%s %s does not exist", kind, name)
	default:
		texts := []string{}
		for _, typ := range []string{clusterv1alpha1.ConditionReachable, clusterv1alpha1.ConditionAuthorized} {
			for _, k := range c.Conditions {
				if k.Type == typ {
					texts = append(texts, fmt.Sprintf("%s=%s", typ, k.Status))
				}
			}
		}
		b.fact(fact, "%s %s, %s", kind, name, strings.Join(texts, ", "))
		b.events(view.Ref{Kind: c.Kind, Namespace: c.Namespace, Name: c.Name})
	}
}

// oneMachine adds all facts about a Machine.
func (b *answer) oneMachine(m *machinev1alpha1.Machine, now time.Time) {
	ref := refOf(view.Machine, m)
	b.Answer.Conditions = m.Status.Conditions
	b.object(ref, m)
	b.fact("Phase", "%s", strings.TrimSpace(phaseOf(m)+" "+waitsFor(m)))
	b.owners(m, now)
	b.fact("Class", "%s %s", cmp.Or(m.Spec.ClassRef.Kind, "MachineClass"), m.Spec.ClassRef.Name)
	b.config(m.Namespace, m.Spec.ClusterRef)
	b.vm(m)
	b.token(m)
	b.join(m)
	b.csrs(m)
	b.node(m)
	b.deletion(m)
	b.console(m)
}

// owners adds the set of a Machine, and why the set does not replace it.
func (b *answer) owners(m *machinev1alpha1.Machine, now time.Time) {
	by := metav1.GetControllerOf(m)
	if by == nil {
		b.fact("Owner", "%s", cmp.Or(nodeClaim(b.v, m), "none: the Machine is not replaced if it fails"))
		b.nodeClaim(m)
		return
	}
	b.fact("Owner", "%s", view.Ref{Kind: by.Kind, Name: by.Name})
	s := b.v.Set(m.Namespace, by.Name)
	if s == nil {
		return
	}
	top := refOf(view.MachineSet, s)
	if d := metav1.GetControllerOf(s); d != nil && b.v.Deployment(s.Namespace, d.Name) != nil {
		top = view.Ref{Kind: view.MachineDeployment, Namespace: s.Namespace, Name: d.Name}
	}
	// A finding that blocks the set blocks the replacement of the Machine.
	g, ok := groupOf(b.v, top, now)
	if !ok {
		return
	}
	holds := slices.DeleteFunc(g.Findings, func(f Finding) bool {
		return f.Condition != machinev1alpha1.ConditionRemediationAllowed && f.Condition != machinev1alpha1.ConditionFrozen && f.Condition != clusterv1alpha1.ConditionReachable
	})
	b.Findings = merge(slices.Concat(b.Findings, holds))
	if slices.ContainsFunc(b.Findings, func(f Finding) bool { return f.NeedsUser }) {
		b.State = NeedsUser
	}
}

func (b *answer) vm(m *machinev1alpha1.Machine) {
	r := b.v.VMOf(m)
	if r == nil {
		b.fact("VM", "%s", cmp.Or(m.Status.ProviderID, "not requested yet"))
		return
	}
	ref := view.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	texts := []string{fmt.Sprintf("%s %s", r.Kind, r.Name)}
	switch {
	case r.Missing:
		texts = append(texts, "the resource does not exist")
	case r.Deleted != nil:
		texts = append(texts, "is being deleted")
	}
	for _, typ := range []string{string(xpv2.TypeSynced), machinev1alpha1.ConditionReady} {
		for _, c := range r.Conditions {
			if c.Type == typ {
				texts = append(texts, fmt.Sprintf("%s=%s", typ, c.Status))
			}
		}
	}
	texts = append(texts, cmp.Or(m.Status.ProviderID, "no providerID yet"))
	b.fact("VM", "%s", strings.Join(texts, ", "))
	b.entry(Entry{Time: r.Created, Ref: ref, Source: "Object", Reason: "Created"})
	b.events(ref)
}

// token adds the Secret with the join token and the user data. Its content is never read.
func (b *answer) token(m *machinev1alpha1.Machine) {
	for _, r := range b.v.Resources {
		if r.Role != machinev1alpha1.ResourceUserData || r.Namespace != m.Namespace || r.Machine != m.Name {
			continue
		}
		if r.Missing {
			// The Secret of a Machine that is being deleted is deleted before the Machine.
			break
		}
		text := "Secret " + r.Name
		if at := r.Annotations[clusterv1alpha1.AnnotationMinted]; at != "" {
			text += ", minted at " + at
		}
		if m.Status.Join.At(machinev1alpha1.JoinCertificateRequested) != nil {
			text += ", used"
		}
		b.fact("Join token", "%s", text)
		b.entry(Entry{Time: r.Created, Ref: view.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, Source: "Object", Reason: "Created", Message: "join token and user data"})
		return
	}
	switch {
	case m.Status.Join.At(machinev1alpha1.JoinCertificateRequested) != nil:
		b.fact("Join token", "used")
	case m.Status.NodeRef == nil:
		b.fact("Join token", "not used")
	}
}

// join adds the milestones that the VM has passed.
func (b *answer) join(m *machinev1alpha1.Machine) {
	j := m.Status.Join
	if j == nil {
		return
	}
	ref := refOf(view.Machine, m)
	texts := []string{}
	for _, name := range machinev1alpha1.JoinMilestones() {
		at := j.At(name)
		if at == nil {
			continue
		}
		texts = append(texts, string(name))
		b.entry(Entry{Time: *at, Ref: ref, Source: "Milestone", Reason: string(name)})
	}
	if len(texts) > 0 {
		b.fact("Joining", "%s", strings.Join(texts, " > "))
	}
	if s := j.Bootstrap; s != nil {
		text := fmt.Sprintf("step %q: %s", s.Step, s.State)
		if s.ExitCode != nil {
			text += fmt.Sprintf(", exit code %d", *s.ExitCode)
		}
		b.fact("Bootstrap", "%s", text)
	}
}

func (b *answer) csrs(m *machinev1alpha1.Machine) {
	for _, r := range b.v.CSRsOf(m) {
		state := "Pending"
		for _, c := range r.Conditions {
			state = string(c.Type)
			b.entry(Entry{Time: c.LastUpdateTime, Ref: view.Ref{Kind: "CertificateSigningRequest", Name: r.Name}, Source: "Condition", Reason: string(c.Type), Message: c.Message})
		}
		b.fact("Certificate", "%s of %s: %s", r.Name, r.Signer, state)
	}
}

func (b *answer) node(m *machinev1alpha1.Machine) {
	n := b.v.NodeOf(m)
	switch {
	case n == nil && m.Status.NodeRef == nil:
		b.fact("Node", "none has joined")
		return
	case n == nil && b.v.Target == nil:
		b.fact("Node", "%s; name the target cluster by --target-context to read it", m.Status.NodeRef.Name)
		return
	case n == nil && b.v.Target.NodesUnread:
		b.fact("Node", "%s; it could not be read", m.Status.NodeRef.Name)
		return
	case n == nil:
		b.fact("Node", "%s does not exist in the target cluster", m.Status.NodeRef.Name)
		return
	}
	ref := view.Ref{Kind: "Node", Name: n.Name}
	texts := []string{n.Name}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			texts = append(texts, fmt.Sprintf("Ready=%s", c.Status))
			b.entry(Entry{Time: c.LastTransitionTime, Ref: ref, Source: "Condition", Reason: fmt.Sprintf("Ready=%s %s", c.Status, c.Reason), Message: c.Message, Warning: c.Status != corev1.ConditionTrue})
		}
	}
	if n.Spec.Unschedulable {
		texts = append(texts, "cordoned")
	}
	texts = append(texts, cmp.Or(n.Spec.ProviderID, "no providerID"))
	b.fact("Node", "%s", strings.Join(texts, ", "))
	b.entry(Entry{Time: n.CreationTimestamp, Ref: ref, Source: "Object", Reason: "Created"})
}

func (b *answer) deletion(m *machinev1alpha1.Machine) {
	d := m.Status.Deletion
	if d == nil {
		return
	}
	text := fmt.Sprintf("%s since %s", d.Stage, d.Since.UTC().Format(time.RFC3339))
	if drain := m.Status.Drain; drain != nil {
		text += fmt.Sprintf(", pods left: %d", drain.Remaining)
	}
	b.fact("Deletion", "%s", text)
	b.entry(Entry{Time: d.Since, Ref: refOf(view.Machine, m), Source: "Object", Reason: string(d.Stage)})
}

// console adds the end of the console, as the Machine kept it when it failed, or as the VM has it now.
func (b *answer) console(m *machinev1alpha1.Machine) {
	text := ""
	if m.Status.Join != nil {
		text = m.Status.Join.Console
	}
	if vm := b.v.VMOf(m); text == "" && vm != nil && b.State != Complete {
		text = vm.Console
	}
	if text = strings.TrimSpace(text); text != "" {
		lines := strings.Split(text, "\n")
		b.Answer.Console = lines[max(0, len(lines)-consoleLines):]
	}
}

// conditions adds the conditions of the object to the timeline, at their last transition.
func (b *answer) conditions() {
	for _, c := range b.Answer.Conditions {
		b.condition(b.Ref, c, false)
	}
}

func (b *answer) condition(ref view.Ref, c metav1.Condition, warning bool) {
	b.entry(Entry{Time: c.LastTransitionTime, Ref: ref, Source: "Condition", Reason: view.ConditionText(c), Warning: warning})
}
