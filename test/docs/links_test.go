package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/drover-dev/drover/test/kit"
)

var (
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	codeSpan = regexp.MustCompile("`[^`]*`")
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestLinksOfThePagesLeadSomewhere follows each link to a file of the repository, and to a heading of
// a page. Links to other hosts are not followed.
func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	followed := 0
	for _, page := range append(pages(kit.Root()), "CHANGELOG.md") {
		for _, target := range linksOf(t, page) {
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			followed++
			if problem := follow(t, page, target); problem != "" {
				t.Errorf("%s: the link %s leads nowhere: %s", page, target, problem)
			}
		}
	}
	if followed < 500 {
		t.Errorf("only %d links were followed", followed)
	}
}

// linksOf the text of a page, without its code.
func linksOf(t *testing.T, page string) []string {
	t.Helper()
	var out []string
	for _, line := range text(t, page) {
		for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, "`"), -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// follow a link of a page, and return what is wrong with it.
func follow(t *testing.T, page, target string) string {
	t.Helper()
	path, anchor, _ := strings.Cut(target, "#")
	at := page
	if path != "" {
		at = filepath.Join(filepath.Dir(page), path)
	}
	if _, err := os.Stat(filepath.Join(kit.Root(), at)); err != nil {
		return "there is no " + at
	}
	if anchor == "" || filepath.Ext(at) != ".md" {
		return ""
	}
	seen := map[string]int{}
	for _, line := range text(t, at) {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		slug := slugOf(m[1])
		if n := seen[slug]; n > 0 {
			slug = fmt.Sprintf("%s-%d", slug, n)
		}
		seen[slugOf(m[1])]++
		if slug == anchor {
			return ""
		}
	}
	return at + " has no such heading"
}

// slugOf a heading, as GitHub makes the anchor of it.
func slugOf(heading string) string {
	heading = strings.ReplaceAll(linkText.ReplaceAllString(heading, "$1"), "`", "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// text of a page: its lines without code in fences.
func text(t *testing.T, page string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(kit.Root(), page)) //nolint:gosec // It is of the repository.
	must(t, err)
	var out []string
	fenced := false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if fence.MatchString(line) {
			fenced = !fenced
			continue
		}
		if !fenced {
			out = append(out, line)
		}
	}
	return out
}

func TestSlugOf(t *testing.T) {
	for heading, want := range map[string]string{
		"Why does it not join?":                "why-does-it-not-join",
		"1. What is Drover?":                   "1-what-is-drover",
		"What `maxSurge` and [it](x) do":       "what-maxsurge-and-it-do",
		"cluster.drover.dev/v1alpha1":          "clusterdroverdevv1alpha1",
		"8. How do I choose, and which_one - ": "8-how-do-i-choose-and-which_one---",
	} {
		if got := slugOf(heading); got != want {
			t.Errorf("%q: got %q, want %q", heading, got, want)
		}
	}
}
