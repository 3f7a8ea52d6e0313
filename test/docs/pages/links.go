package pages

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	fence    = regexp.MustCompile("^\\s*(```|~~~)")
	heading  = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	codeSpan = regexp.MustCompile("`+[^`]*`+")
	link     = regexp.MustCompile(`\]\(<?([^()\s>]+(?:\([^()]*\))?)>?(?: "[^"]*")?\)`)
	scheme   = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	htmlID   = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
)

// A Link of a page to a file of the repository, or to a heading.
type Link struct {
	Line   int
	Target string
}

// Links returns the links of a page that lead to the same repository.
func Links(page string) []Link {
	var out []Link
	for i, line := range prose(page) {
		for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
			if !scheme.MatchString(m[1]) {
				out = append(out, Link{Line: i + 1, Target: m[1]})
			}
		}
	}
	return out
}

// prose returns the lines of a page. Those of fenced code are empty.
func prose(page string) []string {
	lines := strings.Split(page, "\n")
	inFence := false
	for i, line := range lines {
		isFence := fence.MatchString(line)
		if isFence {
			inFence = !inFence
		}
		if isFence || inFence {
			lines[i] = ""
		}
	}
	return lines
}

// Anchors returns the anchors of a page's headings, as GitHub makes them.
func Anchors(page string) map[string]bool {
	out := map[string]bool{}
	for _, line := range prose(page) {
		for _, m := range htmlID.FindAllStringSubmatch(line, -1) {
			out[m[1]] = true
		}
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		base := anchor(m[1])
		name := base
		for n := 1; out[name]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		out[name] = true
	}
	return out
}

func anchor(text string) string {
	text = linkText.ReplaceAllString(text, "$1")
	return strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
}

// DeadLinks returns an error for each link without a target. Pages has the text of each page by
// its path in the repository; exists reports whether the repository has another file or folder.
func DeadLinks(pages map[string]string, exists func(path string) bool) []string {
	anchors := map[string]map[string]bool{}
	for name, text := range pages {
		anchors[name] = Anchors(text)
	}
	var out []string
	for name, text := range pages {
		for _, l := range Links(text) {
			file, fragment, hasFragment := strings.Cut(l.Target, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			_, isPage := pages[target]
			switch {
			case strings.HasPrefix(file, "/"):
				out = append(out, fmt.Sprintf("%s:%d: %s: must be relative to the page", name, l.Line, l.Target))
			case !isPage && (strings.HasPrefix(target, "../") || !exists(target)):
				out = append(out, fmt.Sprintf("%s:%d: %s: the repository has no %s", name, l.Line, l.Target, target))
			case hasFragment && isPage && !anchors[target][fragment]:
				out = append(out, fmt.Sprintf("%s:%d: %s: %s has no heading #%s", name, l.Line, l.Target, target, fragment))
			}
		}
	}
	return out
}
