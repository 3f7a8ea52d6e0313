package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// fakeCluster has ConfigMaps by name, and one schema.
type fakeCluster struct {
	configMaps map[string]string
	fetches    []string
	fail       error
}

func (c *fakeCluster) Fetch(_ context.Context, s *fnv1.ResourceSelector) (*fnv1.Resources, error) {
	c.fetches = append(c.fetches, s.GetMatchName())
	if c.fail != nil {
		return nil, c.fail
	}
	value, ok := c.configMaps[s.GetMatchName()]
	if !ok {
		return nil, nil
	}
	return &fnv1.Resources{Items: []*fnv1.Resource{{Resource: &structpb.Struct{Fields: map[string]*structpb.Value{
		"value": structpb.NewStringValue(value),
	}}}}}, nil
}

func (c *fakeCluster) Schema(_ context.Context, gvk schema.GroupVersionKind) (*structpb.Struct, error) {
	c.fetches = append(c.fetches, gvk.Kind)
	if gvk.Kind != "Server" {
		return nil, nil
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{"type": structpb.NewStringValue("object")}}, nil
}

func byName(name string) *fnv1.ResourceSelector {
	return &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchName{MatchName: name}}
}

func require(names ...string) *fnv1.Requirements {
	reqs := &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{}}
	for _, name := range names {
		reqs.Resources[name] = byName(name)
	}
	return reqs
}

func requireSchema(kind string) *fnv1.Requirements {
	return &fnv1.Requirements{Schemas: map[string]*fnv1.SchemaSelector{kind: {ApiVersion: "example.org/v1", Kind: kind}}}
}

// a function of a test, with all requests that it got.
type function struct {
	answer   func(call int, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse
	requests []*fnv1.RunFunctionRequest
}

func (f *function) run(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	f.requests = append(f.requests, proto.CloneOf(req))
	return f.answer(len(f.requests)-1, req), nil
}

func answers(rsp *fnv1.RunFunctionResponse) *function {
	return &function{answer: func(int, *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse { return rsp }}
}

// local runs the functions of a test in process, by their name.
func local(functions map[string]*function) func(Step) (RunFunc, bool) {
	return func(s Step) (RunFunc, bool) {
		f, ok := functions[s.Function]
		if !ok {
			return nil, false
		}
		return f.run, true
	}
}

func stepsNamed(names ...string) []Step {
	var steps []Step
	for _, name := range names {
		steps = append(steps, Step{Name: name, Function: name})
	}
	return steps
}

func observed(uid string) *fnv1.State {
	return &fnv1.State{Composite: &fnv1.Resource{Resource: &structpb.Struct{Fields: map[string]*structpb.Value{
		"metadata": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"uid": structpb.NewStringValue(uid)}}),
	}}}}
}

func ttl(d time.Duration) *fnv1.RunFunctionResponse {
	return &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Ttl: durationpb.New(d)}}
}

func condition(kind string) *fnv1.Condition {
	return &fnv1.Condition{Type: kind, Status: fnv1.Status_STATUS_CONDITION_TRUE, Reason: "Test"}
}

func result(severity fnv1.Severity, message string) *fnv1.Result {
	return &fnv1.Result{Severity: severity, Message: message}
}

func TestTTLIsTheShortestOfAllSteps(t *testing.T) {
	cases := map[string]struct {
		ttls []time.Duration
		want time.Duration
	}{
		"NoneIfNoStepHasOne":        {ttls: []time.Duration{0, 0}, want: 0},
		"ZeroDoesNotCount":          {ttls: []time.Duration{0, time.Minute, 0}, want: time.Minute},
		"TheShortestOfTheFirstStep": {ttls: []time.Duration{time.Second, time.Minute}, want: time.Second},
		"TheShortestOfTheLastStep":  {ttls: []time.Duration{time.Minute, time.Second}, want: time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			functions, names := map[string]*function{}, []string{}
			for i, d := range tc.ttls {
				names = append(names, fmt.Sprint(i))
				functions[fmt.Sprint(i)] = answers(ttl(d))
			}
			got, err := New(Options{Local: local(functions)}).Run(t.Context(), stepsNamed(names...), Input{})
			if err != nil {
				t.Fatal(err)
			}
			if got.TTL != tc.want {
				t.Errorf("TTL: want %s, got %s", tc.want, got.TTL)
			}
		})
	}
}

func TestAStepGetsWhatTheStepBeforeItReturned(t *testing.T) {
	first := answers(&fnv1.RunFunctionResponse{
		Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{"vm": {Ready: fnv1.Ready_READY_TRUE}}},
		Context: mustStruct(t, map[string]any{"by": "first"}),
	})
	second := &function{answer: func(_ int, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		return &fnv1.RunFunctionResponse{Desired: req.GetDesired(), Context: req.GetContext()}
	}}
	r := New(Options{Local: local(map[string]*function{"first": first, "second": second})})
	in := Input{Observed: observed("u"), Context: mustStruct(t, map[string]any{"by": "caller"})}
	steps := stepsNamed("first", "second")
	steps[0].Input = mustStruct(t, map[string]any{"kind": "First"})
	got, err := r.Run(t.Context(), steps, in)
	if err != nil {
		t.Fatal(err)
	}

	meta := &fnv1.RequestMeta{Capabilities: []fnv1.Capability{1, 2, 3, 4, 5}}
	want := []*fnv1.RunFunctionRequest{
		{Meta: meta, Observed: in.Observed, Desired: &fnv1.State{}, Context: in.Context, Input: steps[0].Input},
		{Meta: meta, Observed: in.Observed, Desired: first.answer(0, nil).GetDesired(), Context: first.answer(0, nil).GetContext()},
	}
	if diff := cmp.Diff(want, append(first.requests, second.requests...), protocmp.Transform()); diff != "" {
		t.Errorf("requests: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(first.answer(0, nil).GetDesired(), got.Desired, protocmp.Transform()); diff != "" {
		t.Errorf("desired: -want, +got:\n%s", diff)
	}
	if got.Context.GetFields()["by"].GetStringValue() != "first" {
		t.Errorf("context: got %v", got.Context)
	}
}

func TestConditionsAndResultsAreThoseUpToTheFatalResult(t *testing.T) {
	warning, normal, fatal := fnv1.Severity_SEVERITY_WARNING, fnv1.Severity_SEVERITY_NORMAL, fnv1.Severity_SEVERITY_FATAL
	cases := map[string]struct {
		second     *fnv1.RunFunctionResponse
		conditions []string
		results    []string
		required   []string
		fatal      *FatalError
	}{
		"AllStepsInTheirOrderWithoutOne": {
			second:     &fnv1.RunFunctionResponse{Conditions: []*fnv1.Condition{condition("C"), condition("A")}, Results: []*fnv1.Result{result(normal, "2")}},
			conditions: []string{"B", "C", "A", "Z"},
			results:    []string{"1", "2", "3"},
			required:   []string{"first/x"},
		},
		"WhatPrecedesItInItsStepCounts": {
			second: &fnv1.RunFunctionResponse{
				Conditions:   []*fnv1.Condition{condition("C")},
				Results:      []*fnv1.Result{result(warning, "2"), result(fatal, "no such class"), result(normal, "unseen")},
				Requirements: require("y"),
			},
			conditions: []string{"B", "C"},
			results:    []string{"1", "2"},
			required:   []string{"first/x", "second/y"},
			fatal:      &FatalError{Step: "second", Message: "no such class"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(Options{Resources: &fakeCluster{}, Local: local(map[string]*function{
				"first":  answers(&fnv1.RunFunctionResponse{Conditions: []*fnv1.Condition{condition("B")}, Results: []*fnv1.Result{result(warning, "1")}, Requirements: require("x")}),
				"second": answers(tc.second),
				"third":  answers(&fnv1.RunFunctionResponse{Desired: &fnv1.State{}, Conditions: []*fnv1.Condition{condition("Z")}, Results: []*fnv1.Result{result(normal, "3")}}),
			})})
			got, err := r.Run(t.Context(), stepsNamed("first", "second", "third"), Input{})

			var fatal *FatalError
			errors.As(err, &fatal)
			if diff := cmp.Diff(tc.fatal, fatal); diff != "" {
				t.Errorf("fatal error of %v: -want, +got:\n%s", err, diff)
			}
			if (got.Desired == nil) != (tc.fatal != nil) {
				t.Errorf("desired state: got %v", got.Desired)
			}
			var conditions, results, required []string
			for _, c := range got.Conditions {
				conditions = append(conditions, c.GetType())
			}
			for _, res := range got.Results {
				results = append(results, res.GetMessage())
			}
			for _, req := range got.Required {
				required = append(required, req.Step+"/"+req.Name)
			}
			if diff := cmp.Diff(tc.conditions, conditions); diff != "" {
				t.Errorf("conditions: -want, +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.results, results); diff != "" {
				t.Errorf("results: -want, +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.required, required); diff != "" {
				t.Errorf("required: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestAStepIsCalledUntilItsRequirementsAreStable(t *testing.T) {
	plain := func(reqs *fnv1.Requirements) func(int, *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		return func(int, *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
			return &fnv1.RunFunctionResponse{Requirements: reqs}
		}
	}
	bootstrap := Step{Name: "s", Function: "f",
		RequiredResources: []RequiredResource{{Name: "a", Selector: byName("a")}},
		RequiredSchemas:   []RequiredSchema{{Name: "Server", Selector: &fnv1.SchemaSelector{ApiVersion: "example.org/v1", Kind: "Server"}}},
	}
	cases := map[string]struct {
		step   Step
		answer func(int, *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse
		// has are the resources, extra resources and schemas of each call.
		has []string
		err string
	}{
		"OnceIfItRequiresNothing":         {answer: plain(nil), has: []string{""}},
		"OnceIfItsRequirementsAreEmpty":   {answer: plain(&fnv1.Requirements{}), has: []string{""}},
		"TwiceIfItRequiresSomething":      {answer: plain(require("a")), has: []string{"", "a=1"}},
		"TwiceForASchema":                 {answer: plain(requireSchema("Server")), has: []string{"", "Server=object"}},
		"WhatIsNotFoundIsEmpty":           {answer: plain(require("gone")), has: []string{"", "gone=none"}},
		"AKindThatIsNotThereIsEmpty":      {answer: plain(requireSchema("Gone")), has: []string{"", "Gone=none"}},
		"OnceIfTheCompositionRequiresAll": {step: bootstrap, answer: plain(require("a")), has: []string{"a=1 Server=object"}},
		"TheCompositionsRequirementsStay": {step: bootstrap, answer: plain(require("b")), has: []string{"a=1 Server=object", "a=1 b=2 Server=object"}},
		"TheDeprecatedFieldWorks": {
			answer: plain(&fnv1.Requirements{ExtraResources: map[string]*fnv1.ResourceSelector{"a": byName("a")}}),
			has:    []string{"", "extra:a=1"},
		},
		"AgainForWhatItLearnsFromTheFirst": {
			answer: func(_ int, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
				if len(req.GetRequiredResources()) == 0 {
					return &fnv1.RunFunctionResponse{Requirements: require("a")}
				}
				return &fnv1.RunFunctionResponse{Requirements: require("a", "b")}
			},
			has: []string{"", "a=1", "a=1 b=2"},
		},
		"NotAgainAfterAFatalResult": {
			answer: plainFatal(require("a")), has: []string{""}, err: `pipeline step "s" returned a fatal result: no`,
		},
		"NotForever": {
			answer: func(call int, _ *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
				return &fnv1.RunFunctionResponse{Requirements: require(fmt.Sprintf("never-%d", call))}
			},
			has: []string{"", "never-0=none", "never-1=none", "never-2=none", "never-3=none", "never-4=none"},
			err: `cannot run pipeline step "s": the requirements did not stabilize after 5 iterations`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := &fakeCluster{configMaps: map[string]string{"a": "1", "b": "2"}}
			f := &function{answer: tc.answer}
			r := New(Options{Local: local(map[string]*function{"f": f}), Resources: cluster, Schemas: cluster})
			if tc.step.Name == "" {
				tc.step = Step{Name: "s", Function: "f"}
			}
			_, err := r.Run(t.Context(), []Step{tc.step}, Input{})
			if text(err) != tc.err {
				t.Errorf("error: want %q, got %q", tc.err, text(err))
			}
			if diff := cmp.Diff(tc.has, requirementsOf(f.requests)); diff != "" {
				t.Errorf("calls: -want, +got:\n%s", diff)
			}
		})
	}
}

func plainFatal(reqs *fnv1.Requirements) func(int, *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	return func(int, *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		return &fnv1.RunFunctionResponse{Requirements: reqs, Results: []*fnv1.Result{result(fnv1.Severity_SEVERITY_FATAL, "no")}}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// requirementsOf describes what requests have of a step's requirements.
func requirementsOf(requests []*fnv1.RunFunctionRequest) []string {
	var all []string
	for _, req := range requests {
		var words []string
		for _, group := range []struct {
			prefix    string
			resources map[string]*fnv1.Resources
		}{{"", req.GetRequiredResources()}, {"extra:", req.GetExtraResources()}} {
			for _, name := range sortedKeys(group.resources) {
				value := "none"
				for _, item := range group.resources[name].GetItems() {
					value = item.GetResource().GetFields()["value"].GetStringValue()
				}
				words = append(words, group.prefix+name+"="+value)
			}
		}
		for _, name := range sortedKeys(req.GetRequiredSchemas()) {
			value := "none"
			if s := req.GetRequiredSchemas()[name].GetOpenapiV3(); s != nil {
				value = s.GetFields()["type"].GetStringValue()
			}
			words = append(words, name+"="+value)
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

func TestAnIterationGetsTheContextButNotTheDesiredStateOfTheOneBefore(t *testing.T) {
	f := &function{answer: func(call int, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		if req.Desired.Resources == nil {
			req.Desired.Resources = map[string]*fnv1.Resource{}
		}
		req.Desired.Resources[fmt.Sprint(call)] = &fnv1.Resource{}
		rsp := &fnv1.RunFunctionResponse{Desired: req.GetDesired(), Context: req.GetContext(), Requirements: require("a")}
		response.SetContextKey(rsp, fmt.Sprint(call), structpb.NewBoolValue(true))
		return rsp
	}}
	in := Input{Context: mustStruct(t, map[string]any{"caller": true})}
	got, err := New(Options{Local: local(map[string]*function{"f": f}), Resources: &fakeCluster{}}).Run(t.Context(), stepsNamed("f"), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1"}, sortedKeys(got.Desired.GetResources())); diff != "" {
		t.Errorf("desired: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0", "1", "caller"}, sortedKeys(got.Context.GetFields())); diff != "" {
		t.Errorf("context: -want, +got:\n%s", diff)
	}
	if len(in.Context.GetFields()) != 1 {
		t.Errorf("the caller's context was changed: %v", in.Context)
	}
}

func TestTheNextRunStartsWithWhatTheLastOneRequired(t *testing.T) {
	always := &fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{
		Resources: require("a").GetResources(), Schemas: requireSchema("Server").GetSchemas(),
	}}
	learns := func(_ int, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		if len(req.GetRequiredResources()["a"].GetItems()) == 0 {
			return &fnv1.RunFunctionResponse{Requirements: require("a")}
		}
		return &fnv1.RunFunctionResponse{Requirements: require("a", "b")}
	}
	cases := map[string]struct {
		answer func(int, *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse
		uid    string
		// between the two runs.
		between func(*fakeCluster)
		has     []string
		failed  bool
	}{
		"ResourcesAndSchemas": {
			answer: answers(always).answer, uid: "u",
			has: []string{"a=1 Server=object"},
		},
		"AsTheyAreNow": {
			answer: answers(always).answer, uid: "u", between: func(c *fakeCluster) { c.configMaps["a"] = "changed" },
			has: []string{"a=changed Server=object"},
		},
		"AsTheLastCallRequiredThem": {
			answer: learns, uid: "u",
			has: []string{"a=1 b=2"},
		},
		"WhatItNoLongerRequiresCostsNoCall": {
			answer: func(call int, _ *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
				if call > 1 {
					return &fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{}}
				}
				return &fnv1.RunFunctionResponse{Requirements: require("a")}
			}, uid: "u",
			has: []string{"a=1"},
		},
		"TheDeprecatedFieldAsResources": {
			answer: answers(&fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{ExtraResources: map[string]*fnv1.ResourceSelector{"a": byName("a")}}}).answer, uid: "u",
			has: []string{"a=1", "a=1 extra:a=1"},
		},
		"NotWithoutUID": {
			answer: answers(always).answer,
			has:    []string{"", "a=1 Server=object"},
		},
		"NotIfItCannotBeRead": {
			answer: answers(always).answer, uid: "u", between: func(c *fakeCluster) { c.fail = errors.New("cannot read") },
			has: []string{"Server=object"}, failed: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := &fakeCluster{configMaps: map[string]string{"a": "1", "b": "2"}}
			f := &function{answer: tc.answer}
			r := New(Options{Local: local(map[string]*function{"f": f}), Resources: cluster, Schemas: cluster})
			if _, err := r.Run(t.Context(), stepsNamed("f"), Input{Observed: observed(tc.uid)}); err != nil {
				t.Fatal(err)
			}
			if tc.between != nil {
				tc.between(cluster)
			}
			first := len(f.requests)
			_, err := r.Run(t.Context(), stepsNamed("f"), Input{Observed: observed(tc.uid)})
			if (err != nil) != tc.failed {
				t.Errorf("error: got %v", err)
			}
			if diff := cmp.Diff(tc.has, requirementsOf(f.requests[first:])); diff != "" {
				t.Errorf("calls of the second run: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestARunThatFailsLeavesTheMemoryAsItWas(t *testing.T) {
	fail := false
	first := &function{answer: func(int, *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		if fail {
			return &fnv1.RunFunctionResponse{Requirements: require("b")}
		}
		return &fnv1.RunFunctionResponse{Requirements: require("a")}
	}}
	second := &function{answer: func(int, *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		if fail {
			return plainFatal(nil)(0, nil)
		}
		return &fnv1.RunFunctionResponse{}
	}}
	r := New(Options{Local: local(map[string]*function{"first": first, "second": second}), Resources: &fakeCluster{configMaps: map[string]string{"a": "1", "b": "2"}}})
	for _, fail = range []bool{false, true, false} {
		_, err := r.Run(t.Context(), stepsNamed("first", "second"), Input{Observed: observed("u")})
		if (err != nil) != fail {
			t.Fatalf("error: got %v", err)
		}
	}
	want := []string{"", "a=1", "a=1", "a=1 b=2", "a=1"}
	if diff := cmp.Diff(want, requirementsOf(first.requests)); diff != "" {
		t.Errorf("calls: -want, +got:\n%s", diff)
	}
}

func TestOneRunReadsASelectorOnce(t *testing.T) {
	cluster := &fakeCluster{configMaps: map[string]string{"a": "1"}}
	functions := map[string]*function{}
	for _, name := range []string{"first", "second"} {
		functions[name] = answers(&fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{
			Resources: require("a").GetResources(), Schemas: requireSchema("Server").GetSchemas(),
		}})
	}
	r := New(Options{Local: local(functions), Resources: cluster, Schemas: cluster})
	for range 2 {
		cluster.fetches = nil
		if _, err := r.Run(t.Context(), stepsNamed("first", "second"), Input{Observed: observed("u")}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a", "Server"}, cluster.fetches); diff != "" {
			t.Errorf("reads: -want, +got:\n%s", diff)
		}
	}
}

func TestRequiredHasTheCompositionsRequirementsToo(t *testing.T) {
	r := New(Options{Local: local(map[string]*function{"f": answers(&fnv1.RunFunctionResponse{Requirements: require("c", "b")})}), Resources: &fakeCluster{}})
	got, err := r.Run(t.Context(), []Step{{Name: "s", Function: "f", RequiredResources: []RequiredResource{{Name: "z", Selector: byName("z")}}}}, Input{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Requirement{{"s", "z", byName("z")}, {"s", "b", byName("b")}, {"s", "c", byName("c")}}
	if diff := cmp.Diff(want, got.Required, protocmp.Transform()); diff != "" {
		t.Errorf("required: -want, +got:\n%s", diff)
	}
}

func TestAStepGetsItsCredentials(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "token"}, Data: map[string][]byte{"token": []byte("t")}}
	secrets := fake.NewClientBuilder().WithObjects(secret).Build()
	cases := map[string]struct {
		options Options
		secret  string
		want    map[string]*fnv1.Credentials
		err     string
	}{
		"FromTheirSecret": {
			options: Options{Secrets: secrets}, secret: "token",
			want: map[string]*fnv1.Credentials{"cloud": {Source: &fnv1.Credentials_CredentialData{CredentialData: &fnv1.CredentialData{Data: secret.Data}}}},
		},
		"AMissingSecretIsAnError": {
			options: Options{Secrets: secrets}, secret: "gone",
			err: `cannot run pipeline step "s": cannot get credential "cloud" from Secret ns/gone: secrets "gone" not found`,
		},
		"NoReaderIsAnError": {
			secret: "token",
			err:    `cannot run pipeline step "s": this runner reads no Secrets, so that no step can have credentials`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := answers(&fnv1.RunFunctionResponse{})
			tc.options.Local = local(map[string]*function{"f": f})
			s := Step{Name: "s", Function: "f", Credentials: []Credential{{Name: "cloud", Secret: types.NamespacedName{Namespace: "ns", Name: tc.secret}}}}
			_, err := New(tc.options).Run(t.Context(), []Step{s}, Input{})
			if text(err) != tc.err {
				t.Errorf("error: want %q, got %q", tc.err, text(err))
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, f.requests[0].GetCredentials(), protocmp.Transform()); diff != "" {
				t.Errorf("credentials: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestARunFailsWithTheNameOfTheStep(t *testing.T) {
	fails := func(Step) (RunFunc, bool) {
		return func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
			return nil, errors.New("broken")
		}, true
	}
	cases := map[string]struct {
		options Options
		step    Step
		err     string
	}{
		"AFunctionThatFails":            {options: Options{Local: fails}, err: "broken"},
		"AFunctionWithoutResponse":      {options: Options{Local: local(map[string]*function{"": answers(nil)})}, err: "the function returned no response"},
		"AFunctionOutsideOfTheProcess":  {step: Step{Function: "f"}, err: `the Function "f" does not run in this process, and this runner calls no others`},
		"ResourcesThatNothingReads":     {options: Options{Local: local(map[string]*function{"": answers(&fnv1.RunFunctionResponse{Requirements: require("a")})})}, err: `cannot fetch required resources "a": this runner reads no resources`},
		"SchemasThatNothingReads":       {options: Options{Local: local(map[string]*function{"": answers(&fnv1.RunFunctionResponse{Requirements: requireSchema("Server")})})}, err: `cannot fetch required schema "Server": this runner reads no schemas`},
		"BootstrapThatCannotBeRead":     {options: Options{Resources: &fakeCluster{fail: errors.New("no right")}}, step: Step{RequiredResources: []RequiredResource{{Name: "a", Selector: byName("a")}}}, err: `cannot fetch required resources "a": no right`},
		"ASchemaOfAMalformedApiVersion": {options: Options{Schemas: &fakeCluster{}}, step: Step{RequiredSchemas: []RequiredSchema{{Name: "a", Selector: &fnv1.SchemaSelector{ApiVersion: "a/b/c"}}}}, err: `cannot fetch required schema "a": cannot parse apiVersion "a/b/c": unexpected GroupVersion string: a/b/c`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.step.Name = "s"
			_, err := New(tc.options).Run(t.Context(), []Step{tc.step}, Input{})
			if want := `cannot run pipeline step "s": ` + tc.err; text(err) != want {
				t.Errorf("error: want %q, got %q", want, text(err))
			}
		})
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
