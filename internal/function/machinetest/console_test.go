package machinetest

import (
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// reported returns the reason and the message of a condition of the last decision.
func reported(r Result, typ string) (reason, message string) {
	c := r.Conditions[typ]
	return c.GetReason(), c.GetMessage()
}

// TestAMachineThatDoesNotJoinShowsItsConsole runs the steps with the Composition of the local cloud:
// from the request of the console to a failed Machine without a VM.
func TestAMachineThatDoesNotJoinShowsItsConsole(t *testing.T) {
	p := newPlane(t)
	p.Reconcile()
	p.VMIsCreated()
	p.VMRuns()
	p.Reconcile()
	asked := func(r Result) string {
		metadata, _ := r.Desired.GetResources()["vm"].GetResource().AsMap()["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		value, _ := annotations[machinev1alpha1.AnnotationReadConsole].(string)
		return value
	}
	p.Now = p.Now.Add(59 * time.Second)
	if r := p.Reconcile(); asked(r) != "" || r.TTL != time.Second {
		t.Errorf("in its first minute the console is requested: %q; again in %s", asked(r), r.TTL)
	}
	p.Now = p.Now.Add(time.Second)
	if r := p.Reconcile(); asked(r) != "true" {
		t.Errorf("of a Machine that is late the console is requested: %q", asked(r))
	}

	// The guest shows the token that its user data has, and a step that is not in it.
	Set(p.Composed["vm"], "\x1b[1mjoin "+token+"\x1b[0m\n0123456789abcdef\n"+
		"drover-bootstrap: step evil: failed (exit 1), trying again in 5s\n"+
		"drover-bootstrap: step install-kubelet: started\ncurl: (22) 503\n"+
		"drover-bootstrap: step install-kubelet: failed (exit 22), trying again in 5s\n", "status", "atProvider", "console")
	r := p.Reconcile()
	reason, message := reported(r, machinev1alpha1.ConditionNodeReady)
	if reason != machinev1alpha1.ReasonBootstrapFailing || !strings.HasSuffix(message, "; bootstrap step install-kubelet failed with exit code 22 and is tried again: curl: (22) 503") {
		t.Errorf("NodeReady: %s: %s", reason, message)
	}
	if c := r.VM.Console; c == nil || strings.Contains(c.Excerpt, "0123456789") || strings.Contains(c.Excerpt, "\x1b") || !strings.HasPrefix(c.Excerpt, "join (") {
		t.Errorf("the console is %+v", c)
	}

	p.Now = p.Now.Add(30 * time.Minute)
	r = p.Reconcile()
	if phase(p) != "Failed" || asked(r) != "false" {
		t.Errorf("the Machine is %s, and the console is requested: %q", phase(p), asked(r))
	}
	join := func() map[string]any {
		status, _ := p.Machine.Object["status"].(map[string]any)
		j, _ := status["join"].(map[string]any)
		return j
	}
	kept, _ := join()["console"].(string)
	if !strings.Contains(kept, "curl: (22) 503\n") {
		t.Errorf("the Machine keeps %q", kept)
	}
	Condition(p.Composed["vm"], "Ready", "False", "Missing", "vm-0123456789 is no longer there")
	Set(p.Composed["vm"], "", "status", "atProvider", "console")
	p.Reconcile()
	if got := join()["console"]; got != kept {
		t.Errorf("without its VM it keeps %q", got)
	}
	if step, _ := join()["bootstrap"].(map[string]any); step["step"] != "install-kubelet" || step["state"] != "Failed" || step["exitCode"] != float64(22) {
		t.Errorf("step %v", step)
	}
}

// TestTheConsoleOfAMachineThatJoinedLateIsNotReadAnyMore cancels the request.
func TestTheConsoleOfAMachineThatJoinedLateIsNotReadAnyMore(t *testing.T) {
	p := newPlane(t)
	p.Reconcile()
	p.VMIsCreated()
	p.VMRuns()
	p.Reconcile()
	p.Now = p.Now.Add(2 * time.Minute)
	p.Reconcile()
	if got := p.Composed["vm"].GetAnnotations()[machinev1alpha1.AnnotationReadConsole]; got != "true" {
		t.Fatalf("the console is requested: %q", got)
	}
	p.NodeIs("True", p.Now)
	r := p.Reconcile()
	if got := p.Composed["vm"].GetAnnotations()[machinev1alpha1.AnnotationReadConsole]; got != "false" || phase(p) != "Running" {
		t.Errorf("the console is requested: %q; the Machine is %s", got, phase(p))
	}
	if r.Desired.GetComposite().GetReady() != fnv1.Ready_READY_TRUE {
		t.Error("the Machine is not ready")
	}
}
