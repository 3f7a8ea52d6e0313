package release

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
	gomodule "golang.org/x/mod/module"

	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

// obligation is the requirement of a license on a release, in addition to its text.
type obligation int

const (
	notice obligation = iota
	// offerSource requires to make the source of the module available.
	offerSource
)

// accepted are the licenses that a release may contain, by their SPDX identifier. Before you add
// one, read its requirements.
var accepted = map[string]obligation{
	"0BSD":             notice,
	"Apache-2.0":       notice,
	"BSD-2-Clause":     notice,
	"BSD-3-Clause":     notice,
	"ISC":              notice,
	"MIT":              notice,
	"Python-2.0":       notice,
	"Unicode-DFS-2016": notice,
	"MPL-2.0":          offerSource,
}

// spdxNames are the SPDX identifiers of licenses for which the classifier uses other names.
var spdxNames = map[string]string{"BSD-0-Clause": "0BSD"}

// legalFile matches the name of a file with a license or notice.
var legalFile = regexp.MustCompile(`(?i)^(un)?(licen[sc]e|copying|copyright|notice|patents)([.-][^.]*)?(\.(txt|md|rst))?$`)

// licenseOfDocs is the license of a module's documentation, as those of Docker's origin have it. No program contains that.
const licenseOfDocs = "LICENSE.docs"

// A licensed is a module with the texts that must be distributed with it.
type licensed struct {
	source
	// URL of its source at the module proxy, empty for Go's standard library.
	URL string
	// Licenses are the SPDX identifiers of all texts that were found in it, in order.
	Licenses []string
	// Files are the texts, by their path in the module.
	Files []xpkg.File
}

// expression is the SPDX license expression of the module: all of its licenses apply.
func (l licensed) expression() string { return strings.Join(l.Licenses, " AND ") }

// offersSource reports whether a license of the module requires to make its source available.
func (l licensed) offersSource() bool {
	return slices.ContainsFunc(l.Licenses, func(id string) bool { return accepted[id] == offerSource })
}

var loadClassifier = sync.OnceValues(assets.DefaultClassifier)

// license reads the licenses of a module. It fails if there is none, or if one is not accepted.
func license(s source) (licensed, error) {
	l := licensed{source: s}
	var err error
	if l.URL, err = proxyURL(s.module); err != nil {
		return l, err
	}
	c, err := loadClassifier()
	if err != nil {
		return l, err
	}
	// Notices that refer to a license without its text, as that of Apache-2.0, which Drover has itself.
	var headers []string
	err = filepath.WalkDir(s.Dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != s.Dir && isNotLinked(d.Name()):
			return fs.SkipDir
		case d.Name() == licenseOfDocs || !d.Type().IsRegular() || !legalFile.MatchString(d.Name()):
			return nil
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(s.Dir, file)
		if err != nil {
			return err
		}
		for _, m := range c.Match(content).Matches {
			if m.MatchType == "Header" {
				headers = append(headers, spdxName(m))
			}
			if m.MatchType != "License" {
				continue
			}
			id := spdxName(m)
			if _, ok := accepted[id]; !ok {
				return fmt.Errorf("%s: the license %s in %s is not one that a release may contain", s.module, id, relative)
			}
			l.Licenses = append(l.Licenses, id)
		}
		l.Files = append(l.Files, xpkg.File{Path: filepath.ToSlash(relative), Content: content})
		return nil
	})
	if err != nil {
		return l, err
	}
	if len(l.Licenses) == 0 && slices.Equal(slices.Compact(headers), []string{"Apache-2.0"}) {
		l.Licenses = headers[:1]
	}
	slices.Sort(l.Licenses)
	l.Licenses = slices.Compact(l.Licenses)
	if len(l.Licenses) == 0 {
		return l, fmt.Errorf("%s: no license was found in %s", s.module, s.Dir)
	}
	return l, nil
}

func spdxName(m *classifier.Match) string {
	if name, ok := spdxNames[m.Name]; ok {
		return name
	}
	return m.Name
}

// isNotLinked reports whether Go never links the content of a folder of this name.
func isNotLinked(folder string) bool {
	return folder == "testdata" || folder == "vendor" || strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_")
}

// licenses reads the licenses of modules.
func licenses(ctx context.Context, modules []module) ([]licensed, error) {
	sources, err := download(ctx, modules)
	if err != nil {
		return nil, err
	}
	var all []licensed
	for _, s := range sources {
		l, err := license(s)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// standardLibrary returns Go's own license, which covers the linked parts of the standard library.
func standardLibrary(ctx context.Context, version string) (licensed, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return licensed{}, fmt.Errorf("go env GOROOT: %w", err)
	}
	root := strings.TrimSpace(string(out))
	l := licensed{source: source{module: module{Path: "std", Version: version}}, Licenses: []string{"BSD-3-Clause"}}
	for _, name := range []string{"LICENSE", "PATENTS"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return l, fmt.Errorf("license of the Go standard library: %w", err)
		}
		l.Files = append(l.Files, xpkg.File{Path: name, Content: content})
	}
	return l, nil
}

// legalFolder is the folder of an image with its licenses.
const legalFolder = "licenses"

// legalFiles returns the files of an image that the licenses of its modules require. own are
// Drover's LICENSE and NOTICE.
func legalFiles(own []xpkg.File, modules []licensed, r xpkg.Release) []xpkg.File {
	var files []xpkg.File
	for _, f := range own {
		files = append(files, xpkg.File{Path: path.Join(legalFolder, f.Path), Content: f.Content})
	}
	files = append(files, xpkg.File{Path: path.Join(legalFolder, "THIRD_PARTY.md"), Content: []byte(thirdParty(modules, r))})
	for _, m := range modules {
		for _, f := range m.Files {
			files = append(files, xpkg.File{Path: path.Join(legalFolder, "third-party", m.String(), f.Path), Content: f.Content})
		}
	}
	return files
}

// thirdParty lists the modules of a program, and where to get the sources that a license requires to
// offer.
func thirdParty(modules []licensed, r xpkg.Release) string {
	var list, offer strings.Builder
	for _, m := range modules {
		fmt.Fprintf(&list, "| %s | %s | %s |\n", m.Path, m.Version, m.expression())
		if m.offersSource() {
			fmt.Fprintf(&offer, "- %s: %s\n", m, m.URL)
		}
	}
	text := "# Third-party software\n\nThis program contains these Go modules. The texts of their licenses and notices are in `third-party/MODULE@VERSION`.\n\n" +
		"| module | version | licenses |\n|---|---|---|\n" + list.String()
	if offer.Len() > 0 {
		text += fmt.Sprintf("\n## Source code\n\nThe source code of these modules is available, unmodified and under the license named above, in the file\n"+
			"`%s` of this release (`oras pull %s/%s:%s`), and here:\n\n%s", sourcesFile(r), r.Registry, artifactName, r.Version, offer.String())
	}
	return text
}

// proxyURL returns the URL of a module's source at the module proxy.
func proxyURL(m module) (string, error) {
	path, err := gomodule.EscapePath(m.Path)
	if err != nil {
		return "", err
	}
	version, err := gomodule.EscapeVersion(m.Version)
	return "https://proxy.golang.org/" + path + "/@v/" + version + ".zip", err
}
