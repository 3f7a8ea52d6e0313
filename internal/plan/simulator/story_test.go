package simulator

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/deployment"
	"github.com/drover-dev/drover/internal/plan/freeze"
)

var update = flag.Bool("update", false, "write the traces of the stories anew")

// trace separates the script of a story from its trace.
const trace = "-- trace --\n"

// TestStories replays each script of testdata/stories and compares the decisions of the planners
// with the trace in the same file. A change of behavior is a diff of a trace.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, want, _ := strings.Cut(string(raw), trace)
			got := play(t, script)
			if *update {
				if err := os.WriteFile(file, []byte(script+trace+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("the story goes otherwise; if it shall, run: go test ./internal/plan/simulator -run TestStories -update\n%s", difference(want, got))
			}
		})
	}
}

// difference returns the first lines that differ, with a few lines before them.
func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	end := func(lines []string) []string { return lines[min(i, len(lines)):min(i+8, len(lines))] }
	return fmt.Sprintf("%s\nwant:\n%s\ngot:\n%s", strings.Join(a[max(0, i-5):i], "\n"), strings.Join(end(a), "\n"), strings.Join(end(b), "\n"))
}

// A story records the trace while its script is played.
type story struct {
	w *World
	// aliases of names, in the order of their first appearance.
	aliases  map[string]string
	order    []string
	sets, ms int
	seenSets int
	lines    []storyLine
	phases   map[string]string
	counts   string
	conds    map[string]string
	spec     machinev1alpha1.MachineDeploymentSpec
	cloud    Cloud
	types    []string
}

// play plays a script and returns its trace.
func play(t *testing.T, script string) string {
	s := &story{aliases: map[string]string{}, phases: map[string]string{}, conds: map[string]string{}}
	labels := map[string]machinev1alpha1.LabelValue{"pool": "a"}
	s.spec = machinev1alpha1.MachineDeploymentSpec{
		Replicas: 3,
		Selector: machinev1alpha1.Selector{MatchLabels: labels},
		Template: machinev1alpha1.MachineTemplate{
			Metadata: machinev1alpha1.TemplateMetadata{Labels: labels},
			Spec:     machinev1alpha1.MachineSpec{ClassRef: machinev1alpha1.ClassReference{Name: "small"}, Version: "v1"},
		},
		ProgressDeadlineSeconds: 1800,
		RevisionHistoryLimit:    10,
	}
	// The defaults of the schema.
	for _, field := range []string{"strategy RollingUpdate", "surge 1", "unavailable 0"} {
		if err := setFields(&s.spec, strings.Fields(field)); err != nil {
			t.Fatal(err)
		}
	}
	s.cloud = Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second, Update: 40 * time.Second}
	for i, line := range strings.Split(script, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.play(strings.Fields(line), line); err != nil {
			t.Fatalf("line %d: %q: %v", i+1, line, err)
		}
	}
	for _, v := range s.w.Violations {
		s.note("violated", v)
	}
	return s.String()
}

// A storyLine is an action of one source at a time.
type storyLine struct {
	at           time.Duration
	source, text string
}

// String is the trace, with aliases for names.
func (s *story) String() string {
	s.names()
	var out strings.Builder
	for i, l := range s.lines {
		if i == 0 || s.lines[i-1].at != l.at {
			fmt.Fprintf(&out, "%s\n", l.at)
		}
		fmt.Fprintf(&out, "    %-11s %s\n", s.plain(l.source), s.plain(l.text))
	}
	return out.String()
}

// begin the world, once its settings are complete.
func (s *story) begin() {
	if s.w != nil {
		return
	}
	s.w = NewWorld(s.spec, s.cloud)
	if len(s.types) > 0 {
		s.w.InstanceTypes = &InstanceTypes{Names: s.types, Refused: map[string]string{}}
	}
	s.w.OnEvent = func(source string, e plan.Event) {
		switch e.Reason {
		case machinev1alpha1.EventVMRequested, machinev1alpha1.ReasonVMRunning, machinev1alpha1.ReasonNodeReady:
			// The phase of the Machine reports the same.
			return
		}
		s.note(source, e.Reason+": "+e.Message)
	}
	s.w.OnTick = s.tick
}

// note an action of a source at the present time.
func (s *story) note(source, text string) {
	s.lines = append(s.lines, storyLine{s.w.Now.Sub(start).Truncate(time.Second), source, text})
}

var start = New(machinev1alpha1.MachineDeploymentSpec{}).Now

// names gives each set and Machine an alias when it first appears.
func (s *story) names() {
	alias := func(name, prefix string, n *int) {
		if s.aliases[name] == "" {
			*n++
			s.aliases[name] = prefix + strconv.Itoa(*n)
			s.order = append(s.order, name)
		}
	}
	for ; s.seenSets < len(s.w.sets.log); s.seenSets++ {
		alias(s.w.sets.log[s.seenSets].name, "set-", &s.sets)
	}
	for _, set := range s.w.Sets() {
		for i := range set.Status.Created {
			alias(names.Machine(set.Name, set.UID, i), "m", &s.ms)
		}
	}
}

// plain text, with aliases for names.
func (s *story) plain(text string) string {
	longest := slices.Clone(s.order)
	slices.SortStableFunc(longest, func(a, b string) int { return len(b) - len(a) })
	for _, name := range longest {
		text = strings.ReplaceAll(text, name, s.aliases[name])
	}
	return text
}

// tick notes the changes of a time when nothing is left to do at that time.
func (s *story) tick() {
	s.names()
	changed := map[string][]string{}
	is := map[string]bool{}
	for _, m := range s.w.Machines() {
		name := s.aliases[m.Name]
		phase := string(m.Status.Phase)
		switch {
		case m.DeletionTimestamp != nil:
			phase = "is being deleted"
		case phase == "":
			phase = "is created"
		case m.Status.Phase == machinev1alpha1.MachineFailed:
			phase += " (" + string(m.Status.FailureReason) + ")"
		}
		if st := m.Status.InstanceType; st != nil && st.Name != "" && m.DeletionTimestamp == nil {
			phase += " as " + st.Name
		}
		is[name] = true
		if s.phases[name] != phase {
			s.phases[name] = phase
			changed[phase] = append(changed[phase], name)
		}
	}
	for name := range s.phases {
		if !is[name] {
			delete(s.phases, name)
			changed["is gone"] = append(changed["is gone"], name)
		}
	}
	for _, phase := range slices.Sorted(maps.Keys(changed)) {
		names := changed[phase]
		slices.SortFunc(names, func(a, b string) int { return number(a) - number(b) })
		s.note("machines", strings.Join(names, ", ")+": "+phase)
	}
	d := s.w.Deployment()
	s.conditions("deployment", d.Status.Conditions)
	for _, set := range s.w.Sets() {
		s.conditions(set.Name, set.Status.Conditions)
	}
	st := d.Status
	counts := fmt.Sprintf("%d of %d Machines, %d up to date, %d available, %d terminating", st.Replicas, d.Spec.Replicas, st.UpdatedReplicas, st.AvailableReplicas, st.TerminatingReplicas)
	if counts != s.counts {
		s.counts = counts
		s.note("counts", counts)
	}
}

func number(alias string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(alias, "m"))
	return n
}

// conditions of an object that changed their status or reason.
func (s *story) conditions(of string, conditions []metav1.Condition) {
	for _, c := range conditions {
		key, value := of+"/"+c.Type, string(c.Status)+" "+c.Reason
		before, known := s.conds[key]
		if before == value {
			continue
		}
		s.conds[key] = value
		if !known && of != "deployment" && (c.Status == metav1.ConditionFalse) != (c.Type == "Ready" || c.Type == "Valid") {
			// The good initial conditions of a set are not noted.
			continue
		}
		message := ""
		if c.Message != "" {
			message = ": " + c.Message
		}
		s.note(of, fmt.Sprintf("[%s is %s, %s%s]", c.Type, c.Status, c.Reason, message))
	}
}

// play a line of a script.
func (s *story) play(words []string, line string) error {
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	if done, err := s.prepare(words, arg); done || err != nil {
		return err
	}
	s.begin()
	w := s.w
	switch words[0] {
	case "wait":
		return s.wait(arg)
	case "given":
		// One story has the trace of the start, and the remaining ones leave it out.
		if !w.RunUntil(time.Hour, w.Settled) {
			return fmt.Errorf("not settled after an hour")
		}
		s.lines = nil
		return nil
	}
	s.note("user", line)
	spec := func(change func(*machinev1alpha1.MachineDeploymentSpec)) {
		w.Update(func(d *machinev1alpha1.MachineDeployment) { change(&d.Spec) })
	}
	switch strings.Join(words[:min(2, len(words))], " ") {
	case "freeze", "thaw":
		w.Update(func(d *machinev1alpha1.MachineDeployment) {
			if d.Labels = nil; words[0] == "freeze" {
				d.Labels = map[string]string{machinev1alpha1.LabelFreeze: "true"}
			}
		})
		w.touch()
	case "hold", "hold no", "abort", "retry", "approve " + arg(1), "hold " + arg(1):
		w.Update(func(d *machinev1alpha1.MachineDeployment) { request(d, words[0], arg(1)) })
		w.touch()
	case "gate holds":
		w.Gate = &plan.RolloutGate{Hold: true, Reason: "EtcdUpgrade", Message: "etcd is being upgraded"}
		w.touch()
	case "analyses find":
		w.Finds = machinev1alpha1.AnalysisVerdict(arg(2))
		w.touch()
	case "analyses unanswered":
		w.Unanswered = true
	case "analyses answered":
		w.Unanswered = false
		w.touch()
	case "analyses missing":
		w.MissingAnalysis = arg(2)
		w.touch()
	case "gate opens":
		w.Gate = nil
		w.touch()
	case "pause", "resume":
		spec(func(d *machinev1alpha1.MachineDeploymentSpec) { d.Paused = words[0] == "pause" })
	case "roll back":
		n, err := strconv.ParseInt(arg(3), 10, 64)
		if err != nil {
			return err
		}
		spec(func(d *machinev1alpha1.MachineDeploymentSpec) {
			d.RollbackTo = &machinev1alpha1.RollbackTo{Revision: n}
			for _, r := range w.Deployment().Status.Revisions {
				if r.Revision == n {
					w.BackTo = &r
				}
			}
		})
	case "cloud refuses":
		w.Cloud.Refuses, w.Cloud.RefusesIn = arg(2), arg(4)
	case "cloud lacks":
		w.InstanceTypes.Refused[arg(2)] = string(fn.ErrorCapacityExhausted)
		w.InstanceTypes.Accepts = func() bool { return arg(3) == "later" }
	case "cloud has":
		delete(w.InstanceTypes.Refused, arg(2))
	case "cloud accepts":
		w.Cloud.Refuses = ""
	case "no Node":
		w.Cloud.NoJoin = true
	case "Nodes join":
		w.Cloud.NoJoin = false
	case "cluster unreachable":
		w.Target = &freeze.Cluster{Kind: "ClusterProviderConfig", Name: "target", Unreachable: true, Reason: "Timeout", Since: w.Now}
		w.touch()
	case "cluster reachable":
		w.Target = nil
		w.touch()
	case "class small":
		w.Classes = map[string]Class{"small": {Missing: arg(2) == "missing"}}
		w.touch()
	default:
		return s.toMachines(words, arg)
	}
	return nil
}

// toMachines changes Machines, their VMs or their Nodes.
func (s *story) toMachines(words []string, arg func(int) string) error {
	machines := map[string]string{}
	for name, alias := range s.aliases {
		machines[alias] = name
	}
	if words[0] == "set" {
		return s.set(words, arg)
	}
	verb, names := words[0], words[1:]
	for _, alias := range names {
		name, ok := machines[strings.TrimSuffix(alias, ",")]
		if !ok {
			return fmt.Errorf("there is no Machine %q", alias)
		}
		annotate := func(key, value string) {
			s.w.Change(name, func(m *machinev1alpha1.Machine) {
				if m.Annotations == nil {
					m.Annotations = map[string]string{}
				}
				m.Annotations[key] = value
			})
		}
		switch verb {
		case "delete":
			s.w.DeleteByUser(name)
			s.w.wake()
		case "kill":
			s.w.KillNode(name)
		case "revive":
			s.w.ReviveNode(name)
		case "rob":
			s.w.LoseGPU(name, 1)
		case "break":
			s.w.LoseGPU(name, 100)
		case "lose":
			s.w.LoseVM(name)
		case "mark":
			annotate(machinev1alpha1.AnnotationDeleteMachine, "true")
		case "preserve":
			annotate(machinev1alpha1.AnnotationPreserve, machinev1alpha1.PreserveWhenFailed)
		case "replace":
			annotate(machinev1alpha1.AnnotationReplace, "true")
		default:
			return fmt.Errorf("nobody knows how to %q", verb)
		}
	}
	return nil
}

// prepare applies settings from before the start of the world.
func (s *story) prepare(words []string, arg func(int) string) (bool, error) {
	if s.w != nil {
		return false, nil
	}
	switch words[0] {
	case "cloud":
		var err error
		for i := 1; i+1 < len(words); i += 2 {
			d, e := time.ParseDuration(words[i+1])
			if e != nil {
				err = e
			}
			switch words[i] {
			case "id":
				s.cloud.ID = d
			case "boot":
				s.cloud.Boot = d
			case "drain":
				s.cloud.Drain = d
			case "update":
				s.cloud.Update = d
			case "reboot":
				s.cloud.Reboot = d
			default:
				return false, nil // These are actions of the cloud, not settings.
			}
		}
		return true, err
	case "GPUs":
		n, err := strconv.ParseInt(arg(1), 10, 64)
		s.cloud.GPUs = n
		return true, err
	case "types":
		s.types = words[1:]
		return true, nil
	case "hang":
		n, err := strconv.Atoi(arg(2))
		s.cloud.Hangs = func(i int) bool { return i == n-1 }
		return true, err
	case "set":
		err := setFields(&s.spec, words[1:])
		return true, err
	}
	return false, nil
}

func (s *story) set(words []string, _ func(int) string) error {
	var err error
	s.w.Update(func(d *machinev1alpha1.MachineDeployment) { err = setFields(&d.Spec, words[1:]) })
	return err
}

// setFields of a MachineDeployment: pairs of a name and a value.
func setFields(spec *machinev1alpha1.MachineDeploymentSpec, pairs []string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		v := pairs[i+1]
		bound := ptr.To(intstr.Parse(v))
		n, _ := strconv.ParseInt(v, 10, 32)
		switch pairs[i] {
		case "replicas":
			spec.Replicas = int32(n)
		case "version":
			spec.Template.Spec.Version = v
		case "class":
			spec.Template.Spec.ClassRef.Name = v
		case "domain":
			spec.Template.Spec.FailureDomain = &v
		case "strategy":
			spec.Strategy.Type = machinev1alpha1.StrategyType(v)
			spec.Strategy.InPlaceUpdate.Orchestration = machinev1alpha1.OrchestrationAuto
		case "surge":
			spec.Strategy.RollingUpdate.MaxSurge, spec.Strategy.InPlaceUpdate.MaxSurge = bound, bound
		case "unavailable":
			spec.Strategy.RollingUpdate.MaxUnavailable, spec.Strategy.InPlaceUpdate.MaxUnavailable = bound, bound
		case "inFlight":
			spec.Remediation.MaxInFlight = bound
		case "maxUnhealthy":
			spec.Remediation.MaxUnhealthy = bound
		case "order":
			spec.Remediation.Order = machinev1alpha1.RemediationOrder(v)
		case "steps":
			steps, err := stepsOf(v)
			if err != nil {
				return err
			}
			spec.Strategy.RollingUpdate.Steps = steps
		case "window", "blackout":
			// Fields of cron are joined by underscores.
			schedule, d, _ := strings.Cut(strings.ReplaceAll(v, "_", " "), "+")
			duration, err := time.ParseDuration(d)
			if err != nil {
				return err
			}
			windows := []machinev1alpha1.TimeWindow{{Schedule: schedule, Duration: metav1.Duration{Duration: duration}}}
			if pairs[i] == "window" {
				spec.Rollout.Windows = windows
			} else {
				spec.Rollout.Blackouts = windows
			}
		case "fallback":
			spec.Strategy.InPlaceUpdate.Fallback = machinev1alpha1.FallbackPolicy(v)
		case "maxAge":
			d, err := time.ParseDuration(v)
			if err != nil {
				return err
			}
			spec.Rollout.MaxAge = &metav1.Duration{Duration: d}
		case "onFailure":
			spec.Rollout.OnFailure = machinev1alpha1.FailurePolicy(v)
		case "deadline":
			spec.ProgressDeadlineSeconds = int32(n)
		case "profile":
			spec.Template.Spec.Health.Profiles = []string{v}
		case "minReady":
			spec.MinReadySeconds = int32(n)
		default:
			return fmt.Errorf("there is no field %q", pairs[i])
		}
	}
	return nil
}

// stepsOf a text like 1+10m,50%+Manual,80%+1h+analysis:pods.
func stepsOf(text string) ([]machinev1alpha1.RolloutStep, error) {
	var out []machinev1alpha1.RolloutStep
	for _, t := range strings.Split(text, ",") {
		parts := strings.Split(t, "+")
		s := machinev1alpha1.RolloutStep{Updated: intstr.Parse(parts[0])}
		for _, p := range parts[1:] {
			if p == string(machinev1alpha1.ApprovalManual) {
				s.Approval = machinev1alpha1.ApprovalManual
				continue
			}
			if name, is := strings.CutPrefix(p, "analysis:"); is {
				s.Analyses = append(s.Analyses, name)
				continue
			}
			d, err := time.ParseDuration(p)
			if err != nil {
				return nil, err
			}
			s.Soak = &metav1.Duration{Duration: d}
		}
		out = append(out, s)
	}
	return out, nil
}

// request of a user, as kubectl drover rollout records it.
func request(d *machinev1alpha1.MachineDeployment, verb, arg string) {
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	id := ""
	if n := len(d.Status.Revisions); n > 0 {
		id = deployment.IDOf(d.Status.Revisions[n-1])
	}
	switch verb {
	case "approve":
		d.Annotations[machinev1alpha1.AnnotationRolloutApprove] = id + "/" + arg
	case "hold":
		d.Annotations[machinev1alpha1.AnnotationRolloutHold] = arg
		if arg == "no" {
			delete(d.Annotations, machinev1alpha1.AnnotationRolloutHold)
		}
	case "abort":
		d.Annotations[machinev1alpha1.AnnotationRolloutAbort] = id
	case "retry":
		delete(d.Annotations, machinev1alpha1.AnnotationRolloutAbort)
		if of := deployment.RetryOf(d); of != "" {
			d.Annotations[machinev1alpha1.AnnotationRolloutRetry] = of
		}
	}
}

// wait for some time, or until the pool is settled.
func (s *story) wait(arg func(int) string) error {
	if arg(1) != "until" {
		d, err := time.ParseDuration(arg(1))
		s.w.Run(d)
		return err
	}
	limit, err := time.ParseDuration(arg(4))
	if err != nil {
		return err
	}
	if !s.w.RunUntil(limit, s.w.Settled) {
		s.note("story", fmt.Sprintf("not settled after %s", limit))
	}
	return nil
}

// touch requeues all objects, because some changes are not watched.
func (w *World) touch() {
	w.enqueueDeployment(reaction)
	w.enqueueAnalysis(reaction)
	for _, s := range w.Sets() {
		w.enqueueSet(s.Name, reaction)
	}
	for _, m := range w.Machines() {
		w.enqueueMachine(m.Name, reaction)
	}
}
