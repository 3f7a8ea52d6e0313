package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"testing"
)

// TestEachReasonOfAReplicaFailureSaysWhetherItNeedsAUser checks that there is a decision for each
// error code and each failure reason. A new one in the API must be added here. Reasons of
// Valid=False carry the decision in their declaration, and package conditionsgen tests them.
func TestEachReasonOfAReplicaFailureSaysWhetherItNeedsAUser(t *testing.T) {
	decided := map[string]bool{
		"InvalidRequest": true, "PermissionDenied": true, "ProviderConfigNotFound": true,
		"QuotaExceeded": false, "CapacityExhausted": false, "Throttled": false, "Transient": false,
		"CreateFailed": false, "CreateResultUnknown": false, "CapacityTimeout": false, "VMLost": false,
		"VMFailed": false, "NodeDeleted": false, "JoinTimeout": false, "NodeUnhealthy": false,
	}
	declared := append(constantsOf(t, "../../apis/fn/v1alpha1", "ErrorCode"), constantsOf(t, "../../apis/machine/v1alpha1", "FailureReason")...)
	for _, reason := range declared {
		want, ok := decided[reason]
		if !ok {
			t.Errorf("%s is not decided: does a user have to act?", reason)
		}
		if got := NeedsUser(reason); got != want {
			t.Errorf("%s: needs a user: %t, want %t", reason, got, want)
		}
		delete(decided, reason)
	}
	for reason := range decided {
		t.Errorf("%s is not declared", reason)
	}
}

func TestWhatKeepsAMachineFromBeingValidNeedsAUser(t *testing.T) {
	for reason, want := range map[string]bool{
		"UserDataNotFound":         true,
		"UserDataNotAllowed":       true,
		"AReasonOfAStepOfTheUsers": true,
		"MachinesNotApplied":       false,
	} {
		if got := NeedsUser(reason); got != want {
			t.Errorf("%s: needs a user: %t, want %t", reason, got, want)
		}
	}
}

// constantsOf returns the constants of a string type, from the source of its package.
func constantsOf(t *testing.T, dir, typ string) []string {
	t.Helper()
	var out []string
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == typ && len(v.Values) == 1 {
				if s, ok := v.Values[0].(*ast.BasicLit); ok {
					value, err := strconv.Unquote(s.Value)
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, value)
				}
			}
			return true
		})
	}
	if len(out) == 0 {
		t.Fatalf("%s has no constants of %s", dir, typ)
	}
	return out
}
