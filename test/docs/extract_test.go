package docs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExtract(t *testing.T) {
	cases := map[string]struct {
		reason string
		page   []string
		want   []Block
		err    string
	}{
		"IndentedCode": {
			reason: "Code is indented by four spaces after an empty line; a command may span lines.",
			page:   []string{"# Title", "", "Text:", "", "    kubectl get md \\", "      -A   # all", "", "    kind: Secret", "", "kubectl in a sentence"},
			want:   []Block{{Page: "p", Section: "Title", Line: 5, Script: "kubectl get md \\\n  -A   # all\n"}},
		},
		"CodeOfAListItem": {
			reason: "Code of a list item is indented further.",
			page:   []string{"1. Do it:", "", "       make demo", "       kubectl get md", "", "   Then rest."},
			want:   []Block{{Page: "p", Line: 3, Script: "make demo\nkubectl get md\n"}},
		},
		"Fences": {
			reason: "A fence may be indented, and ends by another one.",
			page:   []string{"  ```sh", "  crossplane xpkg build", "  ```", "```yaml", "a: kubectl", "```"},
			want:   []Block{{Page: "p", Line: 2, Script: "crossplane xpkg build\n"}},
		},
		"OutputThatThePageShows": {
			reason: "Only what follows \"$ \" is typed.",
			page:   []string{"", "    $ kubectl delete x", "    ... denied"},
			want:   []Block{{Page: "p", Line: 2, Script: "kubectl delete x\n", Output: "... denied\n"}},
		},
		"VariablesAndLoops": {
			reason: "A script may set variables first, and have its commands in a loop.",
			page:   []string{"", "    export A=b", "    for x in y; do kubectl get $x; done", "    A=b make x"},
			want:   []Block{{Page: "p", Line: 3, Script: "export A=b\nfor x in y; do kubectl get $x; done\nA=b make x\n"}},
		},
		"Marks": {
			reason: "A mark belongs to the next block.",
			page:   []string{"<!-- commands: run by TestA -->", "", "    make a", "", "<!-- commands: not run: it takes a cloud -->", "    make b", "", "    make c"},
			want: []Block{
				{Page: "p", Line: 3, Script: "make a\n", RunBy: "TestA"},
				{Page: "p", Line: 6, Script: "make b\n", NotRun: "it takes a cloud"},
				{Page: "p", Line: 8, Script: "make c\n"},
			},
		},
		"AnUnknownMark":          {reason: "A typo must not hide a block.", page: []string{"<!-- commands: skip -->", "", "    make a"}, err: "must be one of"},
		"AMarkWithoutCommands":   {reason: "What the mark was for is gone.", page: []string{"<!-- commands: not run: x -->", "", "    a: b"}, err: "no commands below it"},
		"CommandsAmongSomething": {reason: "It cannot be reported what to run.", page: []string{"", "    while sleep 5", "    node=$(x)", "    kubectl get x", "", "    node=1", "    kubectl get x"}, err: "mark it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Extract("p", strings.Join(tc.page, "\n"))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s\nerror %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, d)
			}
		})
	}
}
