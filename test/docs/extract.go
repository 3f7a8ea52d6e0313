package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// A Block is a run of lines of a page that has commands.
type Block struct {
	// Page is the path from the root of the repository, and Line that of the first command.
	Page string
	Line int
	// Section is the text of the last heading.
	Section string
	// Script is the text that a user types. It ends with a line feed.
	Script string
	// Output are the lines that the page shows as the result, after commands that begin with "$ ".
	Output string
	// RunBy is the test that the block's mark names, NotRun the mark's reason. Both are empty
	// for a block that has no mark.
	RunBy, NotRun string
}

func (b Block) String() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

var (
	// isCommand matches the tools whose commands are run, at the beginning of a command, also in a
	// loop, in a pipe and in a substitution. Assignments of variables may precede the tool.
	isCommand = regexp.MustCompile(`(?:^\s*|^\$ |\$\(|[|;&] *|\bdo )(?:[A-Z_]+=\S* )*(?:kubectl|crossplane|make) [a-z-]`)
	// begins matches the first line of a script that has such commands further below.
	begins  = regexp.MustCompile(`^(export|for|while|if|[A-Z_]+=|#)`)
	mark    = regexp.MustCompile(`^<!-- commands: (?:run by (Test\w+)|not run: (.+)) -->$`)
	heading = regexp.MustCompile(`^#+ (.*)$`)
	fence   = regexp.MustCompile("^ *```(.*)$")
)

// Extract returns the blocks of a page. It fails for an unknown mark, for a mark without commands
// below it, and for commands within a block that begins with something else.
func Extract(page, text string) ([]Block, error) {
	var blocks []Block
	section, marked := "", Block{}
	for _, c := range code(strings.Split(text, "\n")) {
		switch {
		case c.heading != "":
			section = c.heading
		case strings.HasPrefix(c.comment, "<!-- commands:"):
			m := mark.FindStringSubmatch(c.comment)
			if m == nil || marked.RunBy+marked.NotRun != "" {
				return nil, fmt.Errorf("%s:%d: %s: must be one of \"run by TestX\" and \"not run: REASON\", once before a block", page, c.line, c.comment)
			}
			marked = Block{RunBy: m[1], NotRun: m[2]}
		case len(c.lines) > 0:
			b, has, err := block(page, section, c)
			if err != nil && marked.RunBy+marked.NotRun == "" {
				return nil, err
			}
			if !has {
				if marked.RunBy+marked.NotRun != "" {
					return nil, fmt.Errorf("%s:%d: a mark, and no commands below it", page, c.line)
				}
				continue
			}
			b.RunBy, b.NotRun, marked = marked.RunBy, marked.NotRun, Block{}
			blocks = append(blocks, b)
		}
	}
	return blocks, nil
}

// block of a piece of code, and whether the piece has commands.
func block(page, section string, c piece) (Block, bool, error) {
	b := Block{Page: page, Section: section}
	if strings.HasPrefix(c.lines[0], "flowchart ") {
		return b, false, nil // A diagram, in which a part may be called kubectl.
	}
	console := strings.HasPrefix(c.lines[0], "$ ")
	for i, line := range c.lines {
		if b.Line == 0 && isCommand.MatchString(line) {
			b.Line = c.line + i
		}
		command, typed := strings.CutPrefix(line, "$ ")
		if console && !typed {
			b.Output += line + "\n"
			continue
		}
		b.Script += command + "\n"
	}
	if b.Line == 0 {
		return b, false, nil
	}
	if !isCommand.MatchString(c.lines[0]) && !begins.MatchString(c.lines[0]) {
		return b, true, fmt.Errorf("%s:%d: the block has commands and begins with %q: mark it", page, b.Line, c.lines[0])
	}
	return b, true, nil
}

// A piece of a page that can matter to a block: a heading, a comment, or lines of code.
type piece struct {
	heading, comment string
	// line of the page that the piece begins at.
	line  int
	lines []string
}

// code finds the pieces of a page. Indented code begins after an empty line or a comment, and is
// indented by at least four spaces more than the text around it.
func code(page []string) []piece {
	var out []piece
	for i := 0; i < len(page); i++ {
		line, before := page[i], ""
		if i > 0 {
			before = strings.TrimSpace(page[i-1])
		}
		text := strings.TrimSpace(line)
		switch m := heading.FindStringSubmatch(line); {
		case m != nil:
			out = append(out, piece{heading: m[1], line: i + 1})
		case strings.HasPrefix(text, "<!--"):
			out = append(out, piece{comment: text, line: i + 1})
		case fence.MatchString(line):
			c := piece{line: i + 2}
			for i++; i < len(page) && !fence.MatchString(page[i]); i++ {
				c.lines = append(c.lines, strings.TrimPrefix(page[i], indentation(line)))
			}
			out = append(out, c)
		case strings.HasPrefix(line, "    ") && (before == "" || strings.HasPrefix(before, "<!--")):
			c, indent := piece{line: i + 1}, indentation(line)
			for ; i < len(page) && strings.HasPrefix(page[i], indent); i++ {
				c.lines = append(c.lines, strings.TrimPrefix(page[i], indent))
			}
			i--
			out = append(out, c)
		}
	}
	return out
}

func indentation(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " "))] }
