package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// read returns all pages of the repository by their paths.
func read(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != root && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return fs.SkipDir
		}
		if d.IsDir() && d.Name() == "testdata" {
			return fs.SkipDir
		}
		if filepath.Ext(file) != ".md" {
			return nil
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		pages[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 50 {
		t.Fatalf("only %d pages", len(pages))
	}
	return pages
}

func TestLinksOfTheRepositoryLeadSomewhere(t *testing.T) {
	dead := DeadLinks(read(t), func(name string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
		return err == nil
	})
	slices.Sort(dead)
	for _, d := range dead {
		t.Error(d)
	}
}

func TestDeadLinks(t *testing.T) {
	other := "# Other page\n\n## `spec.a` and [b](c.md), or not?\n\n## Twice\n\n## Twice\n\n```\n# No heading\n```\n\n<a id=\"by-hand\"></a>\n"
	cases := map[string]struct {
		reason string
		page   string
		want   []string
	}{
		"a page":                 {reason: "The path is relative to the page.", page: "[a](other.md) [b](../README.md)"},
		"a folder":               {reason: "Files that are no pages exist as well.", page: "[a](../apis)"},
		"another site":           {reason: "Other sites are not read.", page: "[a](https://example.org/x.md#y) [b](mailto:a@example.org)"},
		"code":                   {reason: "Code has no links.", page: "`[a](none.md)`\n\n```\n[a](none.md)\n```"},
		"headings":               {reason: "GitHub drops punctuation, and numbers headings that repeat.", page: "# Here\n[a](#here) [b](other.md#speca-and-b-or-not) [c](other.md#twice-1) [d](other.md#by-hand)"},
		"a page that is missing": {reason: "The target is named.", page: "\n[a](none.md)", want: []string{"docs/page.md:2: none.md: the repository has no docs/none.md"}},
		"a heading of the page":  {reason: "A fragment alone is of the same page.", page: "[a](#there)", want: []string{"docs/page.md:1: #there: docs/page.md has no heading #there"}},
		"a heading in code":      {reason: "A comment of a script is no heading.", page: "[a](other.md#no-heading)", want: []string{"docs/page.md:1: other.md#no-heading: docs/other.md has no heading #no-heading"}},
		"a heading too often":    {reason: "There are two.", page: "[a](other.md#twice-2)", want: []string{"docs/page.md:1: other.md#twice-2: docs/other.md has no heading #twice-2"}},
		"an absolute path":       {reason: "It leads elsewhere in a fork.", page: "[a](/docs/other.md)", want: []string{"docs/page.md:1: /docs/other.md: must be relative to the page"}},
		"out of the repository":  {reason: "A reader does not have what is beside it.", page: "[a](../../x)", want: []string{"docs/page.md:1: ../../x: the repository has no ../x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pages := map[string]string{"README.md": "", "docs/other.md": other, "docs/page.md": tc.page, "docs/c.md": ""}
			got := DeadLinks(pages, func(path string) bool { return path == "apis" || path == "../x" })
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
