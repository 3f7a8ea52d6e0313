package dialect

import (
	"bytes"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// How Go and "make generate" mark files that no person writes. The text of such a page is judged
// where it is written: in the comments of the code.
var (
	generated     = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	generatedPage = regexp.MustCompile(`(?m)^<!-- Generated .* Do not edit\. -->$`)
)

// A Line is a line of prose.
type Line struct {
	// Number counts from 1.
	Number int
	Text   string
}

// GoComments returns the lines of comments of a Go file that have words. Directives and generated
// files have none.
func GoComments(source []byte) []Line {
	if generated.Match(source) {
		return nil
	}
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	// Errors of syntax are the compiler's to report.
	s.Init(file, source, func(token.Position, string) {}, scanner.ScanComments)
	var lines []Line
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok != token.COMMENT || isDirective(text) {
			continue
		}
		first := file.Line(pos)
		for i, line := range strings.Split(text, "\n") {
			if line = strings.Trim(line, "/* \t\r"); line != "" {
				lines = append(lines, Line{Number: first + i, Text: line})
			}
		}
	}
}

// isDirective reports whether a comment is one for a tool, such as "//go:build" or "//nolint:x".
func isDirective(comment string) bool {
	return regexp.MustCompile(`^//(?:[a-z]+:|export |line |\s*\+)`).MatchString(comment)
}

var (
	fence      = regexp.MustCompile("^\\s*(```|~~~)")
	codeSpan   = regexp.MustCompile("`+[^`]*`+")
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	comment    = regexp.MustCompile(`<!--.*?-->`)
)

// Markdown returns the lines of a page that have prose, without code blocks, code spans, link targets
// and HTML comments of one line. Generated pages have none.
func Markdown(page []byte) []Line {
	if generatedPage.Match(page) {
		return nil
	}
	var lines []Line
	inFence, inBlock, afterBlank := false, false, true
	for i, raw := range bytes.Split(page, []byte("\n")) {
		text := string(raw)
		indented := strings.HasPrefix(text, "    ")
		isBlank := strings.TrimSpace(text) == ""
		switch {
		case fence.MatchString(text):
			inFence = !inFence
		case inFence:
		case isBlank:
		case indented && (afterBlank || inBlock) && !isItem(text):
			inBlock = true
		default:
			inBlock = false
			text = comment.ReplaceAllString(text, "")
			text = linkTarget.ReplaceAllString(text, "]")
			if text = strings.TrimSpace(codeSpan.ReplaceAllString(text, "`_`")); hasWords(text) {
				lines = append(lines, Line{Number: i + 1, Text: text})
			}
		}
		afterBlank = isBlank
	}
	return lines
}

// isItem reports whether an indented line is an item of a nested list.
func isItem(line string) bool {
	return regexp.MustCompile(`^\s*(?:[-*]|\d+\.) `).MatchString(line)
}

func hasWords(line string) bool { return regexp.MustCompile(`[a-zA-Z]`).MatchString(line) }
