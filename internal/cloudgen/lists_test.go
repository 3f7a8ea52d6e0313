package main

import (
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/clouds"
)

var some = []clouds.Cloud{
	{Name: "acme", Title: "Acme Cloud", Page: "acme.md", Frame: clouds.Native, Docs: clouds.Docs{Capacity: "`size`", VM: "VirtualMachine", UserData: "Secret"}},
	{Name: "bell", Title: "bell", Page: "bell.md", Frame: clouds.Lifted, Companions: []string{"ports", "disks"}, Docs: clouds.Docs{Capacity: "`size`", Note: "bare metal"}},
	{Name: "corp", Title: "Corp", Page: "corp.md", Frame: clouds.Published, Docs: clouds.Docs{Capacity: "nothing"}},
	{Name: "tool", Title: "any tool", Frame: clouds.Own, Unguarded: true},
}

func TestAListHasTheElementsThatItsCommentNames(t *testing.T) {
	cases := map[string]struct{ comment, want string }{
		"EachGuardedCloud":    {"{guarded}.drover.dev", "[acme.drover.dev, bell.drover.dev]"},
		"EachCloud":           {"^{all}$", "[^acme$, ^bell$, ^corp$, ^tool$]"},
		"AFixedElementBefore": {"cluster.drover.dev, guard.{guarded}.drover.dev", "[cluster.drover.dev, guard.acme.drover.dev, guard.bell.drover.dev]"},
		"CloudsWithMoreKinds": {"{with companions}.drover.dev", "[bell.drover.dev]"},
		"TheirKinds":          {"{companion}, {companion}/status", "[ports, disks, ports/status, disks/status]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := fillLists("rules:\n  - apiGroups: [whatever] # clouds: "+tc.comment+"\n    verbs: [get]\n", some)
			if want := "rules:\n  - apiGroups: " + tc.want + " # clouds: " + tc.comment + "\n    verbs: [get]\n"; err != nil || got != want {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		})
	}
}

func TestAListThatNamesNoCloudsIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"a: [] # clouds: {gaurded}\n": "unknown variable",
		"a: [b]\n":                    "no list ends with",
	} {
		if _, err := fillLists(text, some); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestThePartsOfAPage(t *testing.T) {
	parts := partsOf(t.TempDir(), "docs", some)
	for name, want := range map[string]string{
		"titles":     "Acme Cloud, bell, Corp",
		"links":      "[Acme Cloud](providers/acme.md), [bell](providers/bell.md), [Corp](providers/corp.md)",
		"published":  "Corp",
		"providers":  "`provider-acme`, `provider-bell`, `provider-tool`",
		"capacities": "\n\n| cloud | derived from |\n|---|---|\n| Acme Cloud, bell | `size` |\n| Corp | nothing |\n\n",
	} {
		if parts[name] != want {
			t.Errorf("%s: %q, want %q", name, parts[name], want)
		}
	}
	if row := "| [bell](providers/bell.md), bare metal | "; !strings.Contains(parts["table"], row) {
		t.Errorf("the table lacks %q:\n%s", row, parts["table"])
	}
	got, err := fillParts("Before <!-- clouds: published -->\nold<!-- end -->, after.", parts)
	if want := "Before <!-- clouds: published -->Corp<!-- end -->, after."; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if _, err := fillParts("<!-- clouds: all of them --><!-- end -->", parts); err == nil {
		t.Error("a part that does not exist is no error")
	}
}
