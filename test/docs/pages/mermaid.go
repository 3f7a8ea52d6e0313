package pages

import (
	"fmt"
	"regexp"
	"strings"
)

// A Diagram is a block of Mermaid in a page.
type Diagram struct {
	// Line of its first line in the page.
	Line  int
	Lines []string
}

// Diagrams returns the blocks of Mermaid in a page.
func Diagrams(page string) []Diagram {
	var out []Diagram
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) != "```mermaid" {
			continue
		}
		d := Diagram{Line: i + 2}
		for i++; i < len(lines) && !fence.MatchString(lines[i]); i++ {
			d.Lines = append(d.Lines, lines[i])
		}
		out = append(out, d)
	}
	return out
}

var (
	kind        = regexp.MustCompile(`^(flowchart (?:LR|RL|TD|TB|BT)|sequenceDiagram|stateDiagram-v2)$`)
	opens       = regexp.MustCompile(`^(?:subgraph|alt|opt|loop|par|critical) |^state .*\{$`)
	closes      = regexp.MustCompile(`^(?:end|\})$`)
	quoted      = regexp.MustCompile(`"[^"]*"`)
	participant = regexp.MustCompile(`^(?:participant|actor) (\w+)(?: as .+)?$`)
	message     = regexp.MustCompile(`^(\w+) ?-{1,2}(?:>>|\)|x) ?[+-]?(\w+): \S.*$`)
	note        = regexp.MustCompile(`^Note (?:over|left of|right of) (\w+)(?:,(\w+))?: \S.*$`)
	between     = regexp.MustCompile(`^(?:else|and|option)\b`)
	transition  = regexp.MustCompile(`^(?:\[\*\]|\w+) --> (?:\[\*\]|\w+)(?:: [^:;]+)?$`)
	edge        = regexp.MustCompile(`<?(?:-->|---|-\.->|==>|-\. .* \.->|-- .* -->|== .* ==>)(?:\|[^|]*\|)?`)
	node        = regexp.MustCompile(`^\w+(?:[\[({].*)?$`)
)

// Problems returns the lines of a diagram that Mermaid cannot parse, or would parse differently
// than meant. It supports the parts of flowcharts, sequence and state diagrams that the docs use.
func (d Diagram) Problems() []string {
	var out []string
	problem := func(i int, format string, args ...any) {
		out = append(out, fmt.Sprintf("line %d: %s: %s", d.Line+i, strings.TrimSpace(d.Lines[i]), fmt.Sprintf(format, args...)))
	}
	if len(d.Lines) == 0 {
		return []string{fmt.Sprintf("line %d: the diagram is empty", d.Line)}
	}
	first := strings.TrimSpace(d.Lines[0])
	if !kind.MatchString(first) {
		problem(0, "must be a flowchart with a direction, a sequenceDiagram or a stateDiagram-v2")
		return out
	}
	open, known := 0, map[string]bool{}
	for i, raw := range d.Lines[1:] {
		i, line := i+1, strings.TrimSpace(raw)
		switch {
		case line == "" || strings.HasPrefix(line, "%%"):
		case opens.MatchString(line):
			open++
		case closes.MatchString(line):
			if open--; open < 0 {
				problem(i, "nothing is open")
				open = 0
			}
		case first == "sequenceDiagram":
			if why := ofSequence(line, known, open); why != "" {
				problem(i, "%s", why)
			}
		case first == "stateDiagram-v2":
			if !transition.MatchString(line) {
				problem(i, "must be STATE --> STATE: text, and the text must not have a colon or a semicolon")
			}
		default:
			if why := ofFlowchart(line); why != "" {
				problem(i, "%s", why)
			}
		}
	}
	if open > 0 {
		problem(len(d.Lines)-1, "%d blocks are not closed by end", open)
	}
	return out
}

// ofSequence returns why a line of a sequence diagram is wrong, empty if it is correct.
func ofSequence(line string, known map[string]bool, open int) string {
	var named []string
	switch {
	case participant.MatchString(line):
		known[participant.FindStringSubmatch(line)[1]] = true
		return ""
	case between.MatchString(line):
		if open == 0 {
			return "must be in a block such as alt"
		}
		return ""
	case message.MatchString(line):
		named = message.FindStringSubmatch(line)[1:]
	case note.MatchString(line):
		named = note.FindStringSubmatch(line)[1:]
	default:
		return "must be a participant, a message or a note"
	}
	for _, name := range named {
		if name != "" && !known[name] {
			return fmt.Sprintf("participant %q is not declared", name)
		}
	}
	if strings.Contains(line, ";") {
		return "must not have a semicolon, which ends a line"
	}
	return ""
}

// ofFlowchart returns why a line of a flowchart is wrong, empty if it is correct.
func ofFlowchart(line string) string {
	if strings.Count(line, `"`)%2 != 0 {
		return "a quotation mark is missing"
	}
	bare := quoted.ReplaceAllString(line, "")
	var stack []rune
	for _, r := range bare {
		switch r {
		case '[', '(', '{':
			stack = append(stack, r)
		case ']', ')', '}':
			want := map[rune]rune{']': '[', ')': '(', '}': '{'}[r]
			if len(stack) == 0 || stack[len(stack)-1] != want {
				return fmt.Sprintf("bracket %q has no partner", r)
			}
			stack = stack[:len(stack)-1]
		}
	}
	if len(stack) > 0 {
		return fmt.Sprintf("bracket %q has no partner", stack[len(stack)-1])
	}
	for _, part := range edge.Split(bare, -1) {
		if !node.MatchString(strings.TrimSpace(part)) {
			return fmt.Sprintf("%q must be a node", strings.TrimSpace(part))
		}
	}
	return ""
}
