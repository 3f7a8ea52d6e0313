package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/advice"
)

// A section of the page has reasons that are no constants of reasons.go.
type section struct {
	title, intro string
	rows         []constant
}

// readCodes returns the sections with the codes of the package advice and the stages of a deletion. It fails if a stage has no
// comment.
func readCodes(apis string) ([]section, error) {
	stages, err := readStages(filepath.Join(apis, "machine/v1alpha1/machine_types.go"))
	if err != nil {
		return nil, err
	}
	clouds := section{title: "Errors of clouds", intro: "The codes of the errors of clouds are reasons of `InfrastructureReady`, `ReplicaFailure` and `CapacityExhausted`, and in `status.lastOperation`."}
	failures := section{title: "Failures of Machines", intro: "The values of `status.failureReason` of a Machine in the phase Failed."}
	crossplane := section{title: "Reasons of Crossplane", intro: "The reasons of the condition `Synced`, and of `LastAsyncOperation` of VM resources."}
	codes := advice.Codes()
	for _, reason := range slices.Sorted(maps.Keys(codes)) {
		c := constant{value: reason, text: codes[reason].Meaning, notes: map[string]string{"Do": codes[reason].Do}}
		switch {
		case slices.Contains(fn.ErrorCodes(), fn.ErrorCode(reason)):
			clouds.rows = append(clouds.rows, c)
		case machinev1alpha1.FailureReason(reason).IsKnown():
			failures.rows = append(failures.rows, c)
		default:
			crossplane.rows = append(crossplane.rows, c)
		}
	}
	return []section{clouds, failures, {
		title: "Stages of a deletion",
		intro: "The values of `status.deletion.stage` of a Machine, in their order. [On call](on-call.md#machines-do-not-go-away) has the cure of each that lasts.",
		rows:  stages,
	}, crossplane}, nil
}

// readStages returns the constants of the type DeletionStage. Their comments begin with their name, and a verb.
func readStages(file string) ([]constant, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, file, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var out []constant
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Names) != 1 || len(v.Values) != 1 {
			return true
		}
		if typ, ok := v.Type.(*ast.Ident); !ok || typ.Name != "DeletionStage" {
			return true
		}
		literal, ok := v.Values[0].(*ast.BasicLit)
		text := strings.TrimSpace(strings.TrimPrefix(strings.Join(strings.Fields(v.Doc.Text()), " "), v.Names[0].Name))
		if !ok || text == "" {
			err = fmt.Errorf("%s: %s must be a string with a comment", files.Position(v.Pos()), v.Names[0].Name)
			return false
		}
		value, unquoted := strconv.Unquote(literal.Value)
		if unquoted != nil {
			err = unquoted
			return false
		}
		out = append(out, constant{name: v.Names[0].Name, value: value, text: "The stage " + text})
		return true
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: there are no stages", file)
	}
	return out, err
}
