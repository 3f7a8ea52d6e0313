package pages

import (
	"strings"
	"testing"
)

func TestDiagramsOfTheRepository(t *testing.T) {
	n := 0
	for name, text := range read(t) {
		for _, d := range Diagrams(text) {
			n++
			for _, p := range d.Problems() {
				t.Errorf("%s: %s", name, p)
			}
		}
	}
	if n < 8 {
		t.Errorf("there are only %d diagrams", n)
	}
}

func TestProblems(t *testing.T) {
	cases := map[string]struct {
		reason string
		lines  string
		want   string
	}{
		"a flowchart":            {reason: "Nodes, labels of edges, and groups.", lines: "flowchart LR\n subgraph a [A b]\n  X[(api)]\n end\n X -- \"1, (2)\" --> Y([b c])\n Y -. c .-> Z{\"d?\"}\n Z ==> X\n X <-->|\"e: f\"| Y"},
		"a sequence":             {reason: "Participants, messages, notes and alternatives.", lines: "sequenceDiagram\n participant A as a b\n participant B\n A->>B: x\n alt c\n B-->>A: y: z\n else d\n A->>A: w\n end\n Note over A,B: n"},
		"states":                 {reason: "Transitions with and without a text.", lines: "stateDiagram-v2\n [*] --> A\n A --> B: c d\n B --> [*]"},
		"an unknown kind":        {reason: "A typo shows an error in place of a picture.", lines: "flow LR\n A --> B", want: "must be a flowchart"},
		"a bracket":              {reason: "An open bracket swallows the next line.", lines: "flowchart LR\n A[x --> B", want: "line 3: A[x --> B: bracket '[' has no partner"},
		"a wrong bracket":        {reason: "Brackets must match.", lines: "flowchart LR\n A[x) --> B", want: "bracket ')' has no partner"},
		"a quotation mark":       {reason: "An open quotation mark too.", lines: "flowchart LR\n A[\"x] --> B", want: "a quotation mark is missing"},
		"a node of two words":    {reason: "An ID has no spaces.", lines: "flowchart LR\n A b --> B", want: `"A b" must be a node`},
		"an edge to nowhere":     {reason: "An edge needs two nodes.", lines: "flowchart LR\n A -->", want: `"" must be a node`},
		"a group that is open":   {reason: "It would hold all that follows.", lines: "flowchart LR\n subgraph a\n A --> B", want: "1 blocks are not closed"},
		"an end too many":        {reason: "Mermaid fails.", lines: "flowchart LR\n A --> B\n end", want: "nothing is open"},
		"an unknown participant": {reason: "Mermaid draws one more, with its ID as the name.", lines: "sequenceDiagram\n participant A\n A->>B: x", want: `participant "B" is not declared`},
		"a message without text": {reason: "Mermaid fails.", lines: "sequenceDiagram\n participant A\n A->>A", want: "must be a participant, a message or a note"},
		"a semicolon":            {reason: "It ends the line.", lines: "sequenceDiagram\n participant A\n A->>A: x; y", want: "must not have a semicolon"},
		"a colon in a state":     {reason: "It ends the text.", lines: "stateDiagram-v2\n A --> B: c: d", want: "must not have a colon"},
		"an empty block":         {reason: "Mermaid fails.", lines: "", want: "must be a flowchart"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ds := Diagrams("```mermaid\n" + tc.lines + "\n```\n")
			if len(ds) != 1 {
				t.Fatalf("%d diagrams", len(ds))
			}
			got := strings.Join(ds[0].Problems(), "\n")
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
