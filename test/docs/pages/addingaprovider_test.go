package pages

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheFilesOfAProviderAreCounted compares the table of docs/adding-a-provider.md, and the number in its text and in other pages,
// with the YAML files of the cloud that the page adds.
func TestTheFilesOfAProviderAreCounted(t *testing.T) {
	const page, number = "docs/adding-a-provider.md", "seven"
	pages := read(t)
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^\| \[([\w/.-]+\.yaml)\]\(([\w/.-]+)\) \|`).FindAllStringSubmatch(pages[page], -1) {
		if file := path.Join("docs", m[2]); m[1] != file {
			t.Errorf("%s: the link of %s leads to %s", page, m[1], file)
		}
		listed = append(listed, m[1])
	}
	var there []string
	for _, pattern := range []string{"examples/scaleway/*", "test/conformance/clouds/scaleway.yaml", "test/providers/crds/*.scaleway.*"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			rel, err := filepath.Rel(root, f)
			if err != nil {
				t.Fatal(err)
			}
			there = append(there, filepath.ToSlash(rel))
		}
	}
	slices.Sort(listed)
	slices.Sort(there)
	if !slices.Equal(listed, there) {
		t.Errorf("%s lists %q, and the cloud has %q", page, listed, there)
	}
	if len(there) != 7 {
		t.Errorf("there are %d files: change the number %q here and in the pages", len(there), number)
	}
	for _, name := range []string{page, "docs/providers/README.md", "CONTRIBUTING.md", "README.md"} {
		if !strings.Contains(pages[name], number+" YAML files") {
			t.Errorf("%s does not name %s YAML files", name, number)
		}
	}
	b, err := os.ReadFile(filepath.Join(root, "test/kit/plainuserdata.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), "\n\t{\"scaleway\","); n != 1 {
		t.Errorf("test/kit/plainuserdata.go has %d lines of the cloud, and the page names one", n)
	}
}
