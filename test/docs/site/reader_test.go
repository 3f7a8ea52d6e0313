package site

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// A part is a result of the search: a section of a page, or a reason in a table.
type part struct{ URL, Heading, Title, Text string }

// readIndex reads the index of the search, which is a script.
func readIndex(t *testing.T, site fs.FS) []part {
	t.Helper()
	b, err := fs.ReadFile(site, "search-index.js")
	if err != nil {
		t.Fatal(err)
	}
	text, isScript := bytes.CutPrefix(bytes.TrimSpace(b), []byte("window.searchIndex = "))
	text, isComplete := bytes.CutSuffix(text, []byte(";"))
	var out []part
	if err := json.Unmarshal(text, &out); err != nil || !isScript || !isComplete {
		t.Fatalf("the index is no script with a list: %v", err)
	}
	return out
}

// built returns the site that "make site" has built.
func built(t *testing.T) fs.FS {
	t.Helper()
	dir := os.Getenv("DROVER_SITE")
	if dir == "" {
		t.Skip(`DROVER_SITE is not set: "make site" builds the site and checks it`)
	}
	return os.DirFS(dir)
}

// TestTheSearchFindsEachReason: a user has a reason, from a status or an event, and wants its cure.
func TestTheSearchFindsEachReason(t *testing.T) {
	site := built(t)
	index, err := os.ReadFile(filepath.Join(root, "docs/reference/reasons.md"))
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(string(index), -1)
	if len(reasons) < 150 {
		t.Fatalf("docs/reference/reasons.md has only %d reasons", len(reasons))
	}
	found, anchors := map[string]part{}, map[string]page{}
	for _, p := range readIndex(t, site) {
		if p.Heading == "" || p.Title == "" {
			t.Errorf("%s: the section has no heading, or no title of its page", p.URL)
		}
		file, fragment, _ := strings.Cut(p.URL, "#")
		if _, ok := anchors[file]; !ok {
			b, err := fs.ReadFile(site, file)
			if err != nil {
				t.Errorf("%s: %v", p.URL, err)
				continue
			}
			if anchors[file], err = parse(b); err != nil {
				t.Fatal(err)
			}
		}
		if fragment != "" && !anchors[file].ids[fragment] {
			t.Errorf("%s: the page has no such anchor", p.URL)
		}
		if file == "conditions.html" {
			found[p.Heading] = p
		}
	}
	for _, m := range reasons {
		p, ok := found[m[1]]
		if !ok {
			t.Errorf("the search has no section %s of the conditions", m[1])
		}
		if words := len(strings.Fields(p.Text)); ok && words < 5 {
			t.Errorf("%s: the text has %d words, and lacks the meaning: %q", p.URL, words, p.Text)
		}
	}
}

// TestEachPageCanBeTurnedAndEdited follows the links to the next page from the first page on: they lead to each page once.
func TestEachPageCanBeTurnedAndEdited(t *testing.T) {
	site := built(t)
	files := map[string]bool{}
	if err := fs.WalkDir(site, ".", func(name string, d fs.DirEntry, err error) error {
		files[name] = err == nil && !d.IsDir()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	next, previous, visited := "index.html", "", map[string]bool{}
	for next != "" {
		name := next
		if visited[name] {
			t.Fatalf("%s comes twice", name)
		}
		visited[name] = true
		b, err := fs.ReadFile(site, name)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := html.Parse(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		back, canEdit := "", false
		next = ""
		for n := range doc.Descendants() {
			if n.Type != html.ElementNode || n.Data != "a" {
				continue
			}
			attrs := map[string]string{}
			for _, a := range n.Attr {
				attrs[a.Key] = a.Val
			}
			target, problem := follow(name, link{url: attrs["href"]}, nil, files, repository, func(string) bool { return true })
			switch {
			case attrs["rel"] == "next":
				next = target
			case attrs["rel"] == "prev":
				back = target
			}
			if (attrs["rel"] != "") && problem != "" {
				t.Errorf("%s: %s: %s", name, attrs["href"], problem)
			}
			canEdit = canEdit || attrs["class"] == "edit" || strings.Contains(text(n), "its file in the repository")
		}
		if back != previous {
			t.Errorf("%s leads back to %q, and the page before it is %q", name, back, previous)
		}
		if !canEdit {
			t.Errorf("%s has no link to edit it, or to the file that was generated", name)
		}
		previous = name
	}
	for name := range files {
		// A folder without a first page has a list of its pages in place of one.
		if _, err := os.Stat(filepath.Join(root, "docs", filepath.Dir(name), "README.md")); err != nil && filepath.Base(name) == "index.html" {
			continue
		}
		if strings.HasSuffix(name, ".html") && !visited[name] {
			t.Errorf("%s: no page leads to it as the next one", name)
		}
	}
}
