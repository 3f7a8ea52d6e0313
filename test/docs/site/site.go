// Package site checks the website that "make site" builds from docs: each link leads to a page, a
// heading or a file of the repository, and a page loads nothing from another host.
package site

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Page returns the path in the site of a page of docs, for its path in docs.
func Page(file string) string {
	dir, name := path.Split(file)
	if name == "README.md" {
		return dir + "index.html"
	}
	return dir + strings.TrimSuffix(name, ".md") + ".html"
}

// A page has the parts of an HTML file that are checked.
type page struct {
	ids   map[string]bool
	links []link
	// problems of the page alone.
	problems []string
}

// A link is a reference of an element to a URL.
type link struct {
	url string
	// isLoaded reports whether the browser loads the URL with the page.
	isLoaded bool
}

// elements are those that Markdown and the layouts of the site make. Another one is text, such as
// <name>, that is not in code, and that a browser hides.
var elements = map[string]bool{
	"html": true, "img": true, "head": true, "title": true, "meta": true, "link": true, "script": true, "body": true,
	"header": true, "nav": true, "main": true, "aside": true, "footer": true, "div": true, "details": true, "summary": true, "input": true, "label": true,
	"h1": true, "h2": true, "h3": true, "h4": true, "h5": true, "h6": true, "p": true, "blockquote": true, "pre": true, "hr": true, "br": true,
	"ol": true, "ul": true, "li": true, "table": true, "thead": true, "tbody": true, "tr": true, "th": true, "td": true,
	"a": true, "code": true, "del": true, "em": true, "strong": true, "form": true,
}

// staticImport matches an import of a minified JavaScript module that is loaded with the module.
var staticImport = regexp.MustCompile(`(?:from|import)"(\.[^"]+)"`)

// Problems returns the problems of a site, one line each, in order. Repository is the URL below which a link names a file
// of the repository, and exists reports whether the repository has a file or folder. It fails if the
// site cannot be read.
func Problems(site fs.FS, repository string, exists func(file string) bool) ([]string, error) {
	pages, files := map[string]page{}, map[string]bool{}
	var out []string
	err := fs.WalkDir(site, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[name] = true
		b, err := fs.ReadFile(site, name)
		if err != nil {
			return err
		}
		switch path.Ext(name) {
		case ".html":
			pages[name], err = parse(b)
		case ".mjs":
			for _, m := range staticImport.FindAllSubmatch(b, -1) {
				target := path.Join(path.Dir(name), string(m[1]))
				if _, err := fs.Stat(site, target); err != nil {
					out = append(out, fmt.Sprintf("%s: imports %s, which the site does not have", name, target))
				}
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	linked := map[string]bool{"index.html": true}
	for name, p := range pages {
		for _, problem := range p.problems {
			out = append(out, name+": "+problem)
		}
		for _, l := range p.links {
			target, problem := follow(name, l, pages, files, repository, exists)
			if problem != "" {
				out = append(out, fmt.Sprintf("%s: %s: %s", name, l.url, problem))
			}
			if target != name {
				linked[target] = true
			}
		}
	}
	for name := range pages {
		if !linked[name] {
			out = append(out, name+": no page has a link to it")
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// follow returns the file of the site that a link leads to, empty for another site, or why it leads
// nowhere.
func follow(from string, l link, pages map[string]page, files map[string]bool, repository string, exists func(string) bool) (target, problem string) {
	file, ok := strings.CutPrefix(l.url, repository+"/")
	if !ok {
		file, ok = strings.CutPrefix(l.url, strings.Replace(repository, "/blob/", "/edit/", 1)+"/")
	}
	if ok {
		file, _, _ = strings.Cut(file, "#")
		if !exists(file) {
			return "", "the repository has no " + file
		}
		return "", ""
	}
	u, err := url.Parse(l.url)
	switch {
	case err != nil:
		return "", "is no URL"
	case (u.Scheme != "" || u.Host != "") && l.isLoaded:
		return "", "is loaded from another host"
	case u.Scheme != "" || u.Host != "":
		return "", ""
	case strings.HasPrefix(u.Path, "/"):
		return "", "must be relative: a site may be below a path of its host"
	}
	target = from
	if u.Path != "" {
		target = path.Join(path.Dir(from), u.Path)
	}
	if !files[target] && files[path.Join(target, "index.html")] {
		target = path.Join(target, "index.html")
	}
	p, isPage := pages[target]
	switch {
	case !files[target]:
		return "", "the site has no " + target
	case isPage && u.Fragment != "" && !p.ids[u.Fragment]:
		return target, target + " has no #" + u.Fragment
	}
	return target, ""
}

// parse reads an HTML file. It fails if the file cannot be parsed.
func parse(b []byte) (page, error) {
	doc, err := html.Parse(bytes.NewReader(b))
	if err != nil {
		return page{}, err
	}
	p := page{ids: map[string]bool{}}
	titles, headings := 0, 0
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch {
		case !elements[n.Data]:
			p.problems = append(p.problems, fmt.Sprintf("<%s> is no element that Markdown or the layouts make", n.Data))
		case n.DataAtom == atom.Title && strings.TrimSpace(text(n)) != "":
			titles++
		case n.DataAtom == atom.H1:
			headings++
		}
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				if p.ids[a.Val] {
					p.problems = append(p.problems, fmt.Sprintf("the ID %q is there twice", a.Val))
				}
				p.ids[a.Val] = true
			case "href":
				p.links = append(p.links, link{url: a.Val, isLoaded: n.DataAtom == atom.Link})
			case "src":
				p.links = append(p.links, link{url: a.Val, isLoaded: true})
			}
		}
	}
	if titles != 1 {
		p.problems = append(p.problems, fmt.Sprintf("there are %d titles in place of one", titles))
	}
	if headings != 1 {
		p.problems = append(p.problems, fmt.Sprintf("there are %d headings of level 1 in place of one", headings))
	}
	return p, nil
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
