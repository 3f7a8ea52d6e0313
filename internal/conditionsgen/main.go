// Command conditionsgen writes docs/conditions.md, its index docs/reference/reasons.md, and the table of the package advice, from
// the constants of the API packages: the files conditions.go and reasons.go and their comments. The page also has the codes of the
// package advice, and the stages of a deletion.
//
// It is run by go generate in the apis folder.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// rooms are the packages whose constants are the contract.
var rooms = []string{"machine/v1alpha1", "cluster/v1alpha1"}

const (
	page  = "../docs/conditions.md"
	index = "../docs/reference/reasons.md"
	table = "../internal/kubectl/advice/zz_generated.reasons.go"
)

const intro = `# Conditions and events

<!-- Generated from apis/*/v1alpha1/conditions.go and reasons.go by "make generate". Do not edit. -->

The conditions of each kind with the reasons that they have, and the events. Types and reasons are part of the API: scripts may rely
on them. Messages may change. Each object also has the conditions of Crossplane, ` + "`Synced` and `Ready`" + `.

While the provider of a VM reports an error, the code of the error is the reason of ` + "`InfrastructureReady`, `ReplicaFailure` and `CapacityExhausted`" + `:
` + "`QuotaExceeded`, `CapacityExhausted`, `InvalidRequest`, `PermissionDenied`, `ProviderConfigNotFound`, `Throttled` or `Transient`" + `. The failure of a Machine
(` + "`status.failureReason`" + `) is a reason of ` + "`InfrastructureReady` and `ReplicaFailure`" + ` too. Both have [sections of their own](#errors-of-clouds).

[All reasons](reference/reasons.md) are listed alphabetically, too.
`

func main() {
	all, err := readAll(".")
	var codes []section
	if err == nil {
		codes, err = readCodes(".")
	}
	if err == nil {
		err = os.WriteFile(page, []byte(render(all, codes)), 0o644)
	}
	if err == nil {
		err = os.WriteFile(index, []byte(renderIndex(all, codes)), 0o644)
	}
	if err == nil {
		err = os.WriteFile(table, adviceOf(all), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conditionsgen:", err)
		os.Exit(1)
	}
}

// A constant of the contract. Its notes are the items of the list in its comment.
type constant struct {
	name, value, text string
	notes             map[string]string
}

// readAll constants of the API packages in the folder.
func readAll(apis string) ([]constant, error) {
	var all []constant
	for _, room := range rooms {
		for _, file := range []string{"conditions.go", "reasons.go"} {
			found, err := read(filepath.Join(apis, room, file))
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// render the page.
func render(all []constant, codes []section) string {
	conditions, reasons, events := withPrefix(all, "Condition"), withPrefix(all, "Reason"), withPrefix(all, "Event")
	var out strings.Builder
	out.WriteString(intro)
	for _, kind := range kindsOf(slices.Concat(conditions, reasons)) {
		fmt.Fprintf(&out, "\n## %s\n", kind)
		writeTable(&out, []string{"condition", "meaning", "polarity", "True", "False", "what to do"}, of(kind, conditions), func(c constant) []string {
			return []string{code(c.value), c.text, c.notes["Polarity"], c.notes["True"], c.notes["False"], c.notes["Do"]}
		})
		writeTable(&out, []string{"reason", "of", "meaning", "what to do"}, of(kind, reasons), func(c constant) []string {
			return []string{anchored(kind, c.value), code(statuses(c, kind, conditions)), c.text, c.notes["Do"]}
		})
	}
	for _, s := range codes {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", s.title, s.intro)
		head := []string{"reason", "meaning", "what to do"}
		if !slices.ContainsFunc(s.rows, func(c constant) bool { return c.notes["Do"] != "" }) {
			head = head[:2]
		}
		writeTable(&out, head, s.rows, func(c constant) []string {
			return []string{anchored(s.title, c.value), c.text, c.notes["Do"]}[:len(head)]
		})
	}
	out.WriteString("\n## Events\n\nSome reasons of conditions are also reasons of events. Their meaning in the tables above mentions it.\n")
	writeTable(&out, []string{"reason", "kinds", "type", "meaning", "what to do"}, events, func(c constant) []string {
		return []string{anchored(ofEvents, c.value), c.notes["Kinds"], c.notes["Type"], c.text, c.notes["Do"]}
	})
	return out.String()
}

// read reads the constants of a file. The comment of each constant must name its kinds.
func read(file string) ([]constant, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, file, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var out []constant
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec) //nolint:forcetypeassert // A const declaration has nothing else.
			literal, ok := v.Values[0].(*ast.BasicLit)
			if !ok {
				return nil, fmt.Errorf("%s: %s is no string", files.Position(v.Pos()), v.Names[0].Name)
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", files.Position(v.Pos()), err)
			}
			c := describe(v.Names[0].Name, value, v.Doc.Text())
			if c.text == "" || c.notes["Kinds"] == "" {
				return nil, fmt.Errorf("%s: the comment of %s must have a sentence and an item \"Kinds\"", files.Position(v.Pos()), c.name)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// describe reads the comment of a constant: sentences that begin with its name, and a list of notes.
func describe(name, value, comment string) constant {
	c := constant{name: name, value: value, notes: map[string]string{}}
	note := ""
	for line := range strings.SplitSeq(comment, "\n") {
		trimmed := strings.TrimSpace(line)
		if item, ok := strings.CutPrefix(trimmed, "- "); ok {
			key, text, _ := strings.Cut(item, ": ")
			note, c.notes[key] = key, text
			continue
		}
		if note != "" {
			c.notes[note] = strings.TrimSpace(c.notes[note] + " " + trimmed)
			continue
		}
		c.text = strings.TrimSpace(c.text + " " + trimmed)
	}
	c.text = strings.TrimPrefix(c.text, name+" ")
	for _, verb := range []string{"means that ", "is "} {
		c.text = strings.TrimPrefix(c.text, verb)
	}
	if c.text != "" {
		c.text = strings.ToUpper(c.text[:1]) + c.text[1:]
	}
	return c
}

func withPrefix(all []constant, prefix string) []constant {
	return slices.DeleteFunc(slices.Clone(all), func(c constant) bool { return !strings.HasPrefix(c.name, prefix) })
}

func (c constant) kinds() []string { return strings.Split(c.notes["Kinds"], ", ") }

// of returns the constants of a kind.
func of(kind string, all []constant) []constant {
	return slices.DeleteFunc(slices.Clone(all), func(c constant) bool { return !slices.Contains(c.kinds(), kind) })
}

// statuses returns the conditions of a kind that a reason explains, such as "Valid=False". If a condition is
// not one of all kinds of the reason, the kind follows, such as "Valid=False (Machine)".
func statuses(reason constant, kind string, conditions []constant) string {
	known, had := map[string]bool{}, map[string]bool{}
	for _, c := range conditions {
		known[c.value] = true
		had[c.value] = slices.Contains(c.kinds(), kind)
	}
	var out []string
	for _, status := range reason.of() {
		status, only, qualified := strings.Cut(strings.TrimSuffix(status, ")"), " (")
		condition, _, _ := strings.Cut(status, "=")
		if qualified && only != kind || known[condition] && !had[condition] {
			continue
		}
		out = append(out, status)
	}
	return strings.Join(out, ", ")
}

// of returns the statuses that the constant is a reason of, of all kinds.
func (c constant) of() []string { return strings.Split(c.notes["Of"], ", ") }

// kindsOf constants, each once, in their order.
func kindsOf(all []constant) []string {
	var out []string
	for _, c := range all {
		for _, kind := range c.kinds() {
			if !slices.Contains(out, kind) {
				out = append(out, kind)
			}
		}
	}
	return out
}

func writeTable(out *strings.Builder, head []string, rows []constant, cells func(constant) []string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(out, "\n| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, c := range rows {
		line := cells(c)
		for i := range line {
			line[i] = strings.ReplaceAll(line[i], "|", `\|`)
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(line, " | "))
	}
}

func code(s string) string {
	if s == "" {
		return s
	}
	return "`" + s + "`"
}
