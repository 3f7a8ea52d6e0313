package conformance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/test/kit"
)

var update = flag.Bool("update", false, "write the table of providers and cases into the docs")

// docs that have the table.
const docs = "docs/providers/conformance.md"

// intro of the docs. The rest is made of what the clouds say of themselves.
const intro = `# Conformance

Each case runs against each provider's Composition, on a control plane with Drover installed from its packages. Written by
` + "`go test ./test/conformance -run TestTheDocs -update`; `make conformance PROVIDER=aws`" + ` runs the cases of one provider, without
PROVIDER those of all. [Adding a provider](../adding-a-provider.md) tells how the suite comes to know of another one.

The first row of the table says what answers. *Real* is the cloud itself. A *faked API* speaks the wire format of the cloud's API to the
provider from its package. *Played* means that a simulator writes what the provider and the cloud would write: neither the provider nor the
cloud takes part.

What is played is as unkind as the clouds are. A provider looks at a resource when it changed it or when its spec, labels or annotations change, and
otherwise every 10 minutes. It fills in fields of the spec, and adds tags. A VM runs seconds after it was created, and its provider is not told when
somebody deletes or stops it. The fields of providers that run the Terraform CLI are evaluated by the Terraform in PATH; if there is none, by
Terraform's parser, and a line says so. The suite prints how long each provider took.

`

// TestTheDocsHaveTheTable keeps the docs true: a provider that is added, or a case that
// it cannot have, is in them.
func TestTheDocsHaveTheTable(t *testing.T) {
	b := &strings.Builder{}
	b.WriteString(intro)
	writeCases(b)
	writeTable(b)
	file := filepath.Join(kit.Root(), docs)
	if *update {
		must(t, os.WriteFile(file, []byte(b.String()), 0o644)) //nolint:gosec // Docs.
		return
	}
	there, err := os.ReadFile(file)
	must(t, err)
	if diff := cmp.Diff(strings.Split(string(there), "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Errorf("%s: -is +shall be, -update writes it:\n%s", docs, diff)
	}
}

func writeCases(b *strings.Builder) {
	b.WriteString("| case | what it shows |\n|---|---|\n")
	for _, tc := range cases {
		fmt.Fprintf(b, "| %s | %s |\n", tc.Name, tc.Means)
	}
}

func writeTable(b *strings.Builder) {
	var reasons []string
	b.WriteString("\n|")
	for _, c := range clouds {
		b.WriteString(" | " + c.Provider())
	}
	b.WriteString(" |\n|---" + strings.Repeat("|:---:", len(clouds)) + "|\n|")
	for _, c := range clouds {
		b.WriteString(" | " + string(c.Backing()))
	}
	b.WriteString(" |\n")
	for _, tc := range cases {
		b.WriteString("| " + tc.Name)
		for _, c := range clouds {
			cell, reason := "yes", notes(c)[tc.Name]
			if why, ok := cannot(c)[tc.Name]; ok {
				cell, reason = "no", why
			}
			if reason != "" {
				if !slices.Contains(reasons, reason) {
					reasons = append(reasons, reason)
				}
				cell += fmt.Sprintf(" (%d)", slices.Index(reasons, reason)+1)
			}
			b.WriteString(" | " + cell)
		}
		b.WriteString(" |\n")
	}
	b.WriteString("\n")
	for i, reason := range reasons {
		fmt.Fprintf(b, "%d. %s.\n", i+1, strings.TrimSuffix(upper(reason), "."))
	}
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// TestReasonsAreOfCases finds one that is misspelt, and would excuse nothing.
func TestReasonsAreOfCases(t *testing.T) {
	for _, c := range clouds {
		for name, reason := range cannot(c) {
			if !slices.ContainsFunc(cases, func(tc Case) bool { return tc.Name == name }) || reason == "" {
				t.Errorf("%s cannot have %q: there is no such case, or no reason: %q", c.Provider(), name, reason)
			}
		}
	}
}
