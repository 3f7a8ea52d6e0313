package docs

import (
	"regexp"
	"strings"
)

// runbookPage is the page whose tables have a command in each row. A row cannot hold a block.
const runbookPage = "docs/on-call.md"

// span is a command of kubectl in the text of a table.
var span = regexp.MustCompile("`(kubectl [^`]+)`")

// tableCommands returns a block for each command in the tables of a page.
func tableCommands(page, text string) []Block {
	var out []Block
	section := ""
	for i, line := range strings.Split(text, "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			section = m[1]
		}
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		for _, m := range span.FindAllStringSubmatch(line, -1) {
			out = append(out, Block{Page: page, Line: i + 1, Section: section, Script: strings.ReplaceAll(m[1], `\|`, "|") + "\n"})
		}
	}
	return out
}
