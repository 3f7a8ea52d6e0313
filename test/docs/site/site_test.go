package site

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
)

const (
	root       = "../../.."
	repository = "https://github.com/drover-dev/drover/blob/main"
)

// TestTheSite needs a built site: "make site" builds it and sets DROVER_SITE to its folder.
func TestTheSite(t *testing.T) {
	dir := os.Getenv("DROVER_SITE")
	if dir == "" {
		t.Skip(`DROVER_SITE is not set: "make site" builds the site and checks it`)
	}
	site := os.DirFS(dir)
	problems, err := Problems(site, repository, func(file string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(file)))
		return err == nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}

	pages := 0
	err = fs.WalkDir(os.DirFS(filepath.Join(root, "docs")), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" {
			return err
		}
		pages++
		if _, err := fs.Stat(site, Page(name)); err != nil {
			t.Errorf("docs/%s: the site has no %s", name, Page(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 50 {
		t.Errorf("docs has only %d pages", pages)
	}
}

func TestPage(t *testing.T) {
	for file, want := range map[string]string{
		"README.md": "index.html", "rollouts.md": "rollouts.html", "providers/README.md": "providers/index.html", "providers/aws.md": "providers/aws.html",
	} {
		if got := Page(file); got != want {
			t.Errorf("Page(%q) = %q, want %q", file, got, want)
		}
	}
}

func TestProblems(t *testing.T) {
	html := func(body string) string { return "<!doctype html><title>x</title><h1 id=\"x\">x</h1>" + body }
	cases := map[string]struct {
		reason string
		page   string
		want   []string
	}{
		"LinksThatLeadSomewhere": {
			reason: "A link is relative to its page, and a folder is its first page.",
			page:   html(`<a href="other.html#a"></a><a href="../"></a><a href="../index.html#x"></a><a href="#x"></a><a href="?q#x"></a>`),
		},
		"AnotherSite":         {reason: "Other sites are not read.", page: html(`<a href="https://example.org/x#y"></a><a href="mailto:a@example.org"></a>`)},
		"AFileOfTheSite":      {reason: "Styles and scripts are files of the site.", page: html(`<link href="../site.css"><script src="../m/a.mjs"></script>`)},
		"AFileOfTheRepo":      {reason: "The repository has it.", page: html(`<a href="https://example.org/blob/main/Makefile#L1"></a>`)},
		"NoFileToEdit":        {reason: "The editor of the Git host would begin an empty file.", page: html(`<a href="https://example.org/edit/main/none"></a>`), want: []string{"docs/page.html: https://example.org/edit/main/none: the repository has no none"}},
		"NoFileOfTheRepo":     {reason: "A reader would find nothing.", page: html(`<a href="https://example.org/blob/main/none"></a>`), want: []string{"docs/page.html: https://example.org/blob/main/none: the repository has no none"}},
		"NoPage":              {reason: "The target is named.", page: html(`<a href="none.html"></a>`), want: []string{"docs/page.html: none.html: the site has no docs/none.html"}},
		"NoHeading":           {reason: "The browser would show the top of the page.", page: html(`<a href="other.html#b"></a>`), want: []string{"docs/page.html: other.html#b: docs/other.html has no #b"}},
		"NoHeadingOfThePage":  {reason: "A fragment alone is of the same page.", page: html(`<a href="#a"></a>`), want: []string{"docs/page.html: #a: docs/page.html has no #a"}},
		"AnAbsolutePath":      {reason: "It leads out of a site that is below a path.", page: html(`<a href="/index.html"></a>`), want: []string{"docs/page.html: /index.html: must be relative: a site may be below a path of its host"}},
		"OutOfTheSite":        {reason: "The host has something else there.", page: html(`<a href="../../x"></a>`), want: []string{"docs/page.html: ../../x: the site has no ../x"}},
		"AScriptOfAnother":    {reason: "The site works without other hosts.", page: html(`<script src="https://example.org/x.js"></script>`), want: []string{"docs/page.html: https://example.org/x.js: is loaded from another host"}},
		"AFontOfAnother":      {reason: "A host without a scheme is another host too.", page: html(`<link rel="stylesheet" href="//example.org/x.css">`), want: []string{"docs/page.html: //example.org/x.css: is loaded from another host"}},
		"TextThatIsNoElement": {reason: "The browser would hide it.", page: html(`<p>the <name> of it</p>`), want: []string{"docs/page.html: <name> is no element that Markdown or the layouts make"}},
		"AnIDTwice":           {reason: "Only the first one is found.", page: html(`<h2 id="x">y</h2>`), want: []string{`docs/page.html: the ID "x" is there twice`}},
		"NoTitle":             {reason: "The tab would show the address.", page: "<title></title><h1>x</h1>", want: []string{"docs/page.html: there are 0 titles in place of one"}},
		"NoHeadingAtAll":      {reason: "A page begins with its title.", page: "<title>x</title>", want: []string{"docs/page.html: there are 0 headings of level 1 in place of one"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			site := fstest.MapFS{}
			for file, content := range map[string]string{
				"index.html": html(`<a href="docs/page.html"></a><a href="docs/other.html"></a>`), "docs/page.html": tc.page,
				"docs/other.html": html(`<h2 id="a">a</h2>`), "site.css": "", "m/a.mjs": `import{b}from"./b.mjs";import("./never.mjs")`, "m/b.mjs": "",
			} {
				site[file] = &fstest.MapFile{Data: []byte(content)}
			}
			got, err := Problems(site, "https://example.org/blob/main", func(file string) bool { return file == "Makefile" })
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%s\ngot %q, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestProblemsBetweenFiles(t *testing.T) {
	cases := map[string]struct {
		reason string
		site   map[string]string
		want   []string
	}{
		"AModuleThatIsMissing": {reason: "The browser would load none of the importing module.", site: map[string]string{"a.mjs": `import"./b/c.mjs";export{x}from"./d.mjs"`},
			want: []string{"a.mjs: imports b/c.mjs, which the site does not have", "a.mjs: imports d.mjs, which the site does not have"}},
		"APageThatNoPageNames": {reason: "A reader could not find it.", site: map[string]string{"a.html": `<title>x</title><h1>x</h1><a href="a.html"></a>`},
			want: []string{"a.html: no page has a link to it"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			site := fstest.MapFS{}
			for file, content := range tc.site {
				site[file] = &fstest.MapFile{Data: []byte(content)}
			}
			got, err := Problems(site, "https://example.org", func(string) bool { return false })
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%s\ngot %q, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}
