package vm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
)

// input returns a valid input, with changes.
func input(change ...func(*fn.Infrastructure)) *fn.Infrastructure {
	in := &fn.Infrastructure{
		Provider: "test",
		VirtualMachine: fn.VirtualMachineBinding{
			APIVersion: "test.drover.dev/v1",
			Kind:       "VM",
			Fields:     []fn.FieldBinding{{Path: "spec.forProvider.name", Value: "name"}},
		},
		Status: fn.StatusBinding{
			ProviderID: `vm.status.?id.orValue("")`,
			ErrorClasses: []fn.ErrorClass{
				{Code: fn.ErrorQuotaExceeded, Match: "(?i)quota"},
				{Code: fn.ErrorThrottled, Match: "rate|quota"},
			},
		},
	}
	for _, c := range change {
		c(in)
	}
	return in
}

func fields(f ...fn.FieldBinding) func(*fn.Infrastructure) {
	return func(in *fn.Infrastructure) { in.VirtualMachine.Fields = f }
}

func TestABindingThatIsNotValidSaysWhere(t *testing.T) {
	cases := map[string]struct {
		in   *fn.Infrastructure
		want []string
	}{
		"NoProvider": {
			input(func(in *fn.Infrastructure) { in.Provider = "" }),
			[]string{"provider is required"},
		},
		"AnAPIVersionThatIsNone": {
			input(func(in *fn.Infrastructure) { in.VirtualMachine.APIVersion = "a/b/c" }),
			[]string{"virtualMachine.apiVersion", "a/b/c"},
		},
		"AFieldOutsideOfTheSpec": {
			input(fields(fn.FieldBinding{Path: "metadata.name", Value: "name"})),
			[]string{"virtualMachine.fields[0].path", `"metadata.name"`, "must be below spec"},
		},
		"APathThatIsNone": {
			input(fields(fn.FieldBinding{Path: "spec.a[", Value: "name"})),
			[]string{"virtualMachine.fields[0].path", `"spec.a["`},
		},
		"APathOfManyFields": {
			input(fields(fn.FieldBinding{Path: "spec.disks[*].name", Value: "name"})),
			[]string{"virtualMachine.fields[0].path", "without wildcards"},
		},
		"AnExpressionWithATypo": {
			input(fields(fn.FieldBinding{Path: "spec.a", Value: "name"}, fn.FieldBinding{Path: "spec.b", Value: "name +\n  tag"})),
			[]string{"virtualMachine.fields[1].value (of spec.b)", `"name +\n  tag"`, "line 2, column 3", "undeclared reference to 'tag'"},
		},
		"AnExpressionThatIsNoCEL": {
			input(fields(fn.FieldBinding{Path: "spec.a", Value: "{{ name }}"})),
			[]string{"virtualMachine.fields[0].value (of spec.a)", "line 1, column 9", "Syntax error"},
		},
		"AStatusThatReadsTheClass": {
			input(func(in *fn.Infrastructure) { in.Status.ProviderID = "class.spec.id" }),
			[]string{"status.providerID", "undeclared reference to 'class'"},
		},
		"AProviderIDThatIsNoText": {
			input(func(in *fn.Infrastructure) { in.Status.ProviderID = "1 + 1" }),
			[]string{"status.providerID", "must be of type string, is of type int"},
		},
		"ARunningThatIsNoTruth": {
			input(func(in *fn.Infrastructure) { in.Status.Running = "'yes'" }),
			[]string{"status.running", "must be of type bool, is of type string"},
		},
		"AnErrorClassWithACodeThatIsNotDeclared": {
			input(func(in *fn.Infrastructure) { in.Status.ErrorClasses[1].Code = "OutOfStock" }),
			[]string{`status.errorClasses[1].code: "OutOfStock" must be one of ["QuotaExceeded" "CapacityExhausted" "InvalidRequest" "PermissionDenied" "ProviderConfigNotFound" "Throttled" "Transient"]`},
		},
		"AnErrorClassThatIsNoExpression": {
			input(func(in *fn.Infrastructure) { in.Status.ErrorClasses[1].Match = "(" }),
			[]string{"status.errorClasses[1].match", "missing closing )"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Bind(tc.in)
			if err == nil {
				t.Fatal("want an error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("want %q in: %v", want, err)
				}
			}
			if _, again := Bind(tc.in); again == nil || again.Error() != err.Error() {
				t.Errorf("the error is not remembered: %v", again)
			}
		})
	}
}

func TestABindingIsCompiledOnce(t *testing.T) {
	a, err := Bind(input())
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := Bind(input()); a != b {
		t.Error("compiled twice")
	}
	if b, _ := Bind(input(func(in *fn.Infrastructure) { in.Provider = "other" })); a == b {
		t.Error("two inputs share a binding")
	}
}

func TestTheFirstErrorClassThatMatchesWins(t *testing.T) {
	b, err := Bind(input())
	if err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]fn.ErrorCode{
		"Quota and rate exceeded": fn.ErrorQuotaExceeded,
		"rate exceeded":           fn.ErrorThrottled,
		"connection refused":      fn.ErrorTransient,
	} {
		if got := b.classify(message); got != want {
			t.Errorf("%s: want %s, got %s", message, want, got)
		}
	}
}

func TestExpressionsGiveWhatTheAPIMachineryTakes(t *testing.T) {
	env, err := fieldEnv()
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]any{
		"machine":       map[string]any{"spec": map[string]any{"n": int64(3)}},
		"class":         map[string]any{},
		"name":          "vm",
		"userData":      map[string]string{"value": "#cloud-config"},
		"tags":          map[string]string{"a": "b"},
		"failureDomain": "",
	}
	cases := map[string]any{
		`machine.spec.n + 1`:  int64(4),
		`1.5`:                 1.5,
		`tags`:                map[string]any{"a": "b"},
		`[name, "x"]`:         []any{"vm", "x"},
		`null`:                nil,
		`optional.none()`:     nil,
		`optional.of("zone")`: "zone",
		`failureDomain != "" ? optional.of(failureDomain) : optional.none()`: nil,
		`class.?spec.?zone`:                    nil,
		`base64.encode(bytes(userData.value))`: "I2Nsb3VkLWNvbmZpZw==",
		`name.replace("v", "w").upperAscii()`:  "WM",
		`math.greatest(1, 2)`:                  int64(2),
		`["b", "a"].sort()`:                    []any{"a", "b"},
	}
	for text, want := range cases {
		e, err := compile(env, "place", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := e.eval(variables)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", text, diff)
		}
	}
}

func TestAnExpressionThatNeverEndsIsStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("a million steps of CEL take a second")
	}
	env, err := fieldEnv()
	if err != nil {
		t.Fatal(err)
	}
	list := "[" + strings.Repeat("1,", 300) + "1]"
	e, err := compile(env, "place", list+".all(a, "+list+".all(b, "+list+".all(c, a == b || b == c || true)))")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.eval(map[string]any{}); err == nil || !strings.Contains(err.Error(), "cost limit exceeded") {
		t.Errorf("want an error of the cost limit, got %v", err)
	}
}
