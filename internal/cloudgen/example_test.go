package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/clouds"
)

const (
	repository = "../.."
	guide      = "docs/adding-a-provider.md"
	// model is the cloud that the guide copies, and added the name of the new one.
	model, added = "metalstack", "example"
)

// renamed turns the files of the model into those of the new cloud.
var renamed = strings.NewReplacer("metalstack", added, "metal-stack", added, "Metalstack", "Example", "metalStack", "exampleCloud")

// byHand are the files that an author changes beside those of the cloud.
var byHand = []string{"CHANGELOG.md", "docs/providers/fields.md"}

// recorded are the files with what tests compare, which "-update" writes.
var recorded = []string{
	"docs/providers/conformance.md", "internal/userdata/testdata/sizes.txt", "package/provider-drover/testdata/rights.txt",
	"test/e2e/testdata/rights.txt", "test/suite/reads.txt",
}

// maxOthers is how many files an author may have to change beside those of the cloud.
const maxOthers = 8

// TestACloudIsAddedByTheStepsOfTheGuide copies the files of the model into a copy of the repository, and
// generates the rest.
func TestACloudIsAddedByTheStepsOfTheGuide(t *testing.T) {
	root := copyOfTheRepository(t)
	before := contentsOf(t, root)
	if err := run(root, clouds.All()); err != nil {
		t.Fatal(err)
	}
	if changed := differences(before, contentsOf(t, root)); len(changed) > 0 {
		t.Fatalf("these files are not as make generate writes them: %q", changed)
	}

	own := filesOfTheGuide(t)
	for _, pattern := range own {
		copyModel(t, before, root, pattern)
	}
	// The output of the other generators, which take minutes.
	copyModel(t, before, root, "package/provider-NAME/crds/")

	all, err := clouds.Read(os.DirFS(filepath.Join(root, "apis")))
	if err != nil || len(all) != len(clouds.All())+1 {
		t.Fatalf("%d clouds, %v", len(all), err)
	}
	if err := run(root, all); err != nil {
		t.Fatal(err)
	}

	var others []string
	for _, file := range differences(before, contentsOf(t, root)) {
		if !isOf(file, own, added) && file != "package/provider-drover/rbac-"+added+".yaml" && !strings.HasPrefix(file, "package/provider-"+added+"/") {
			others = append(others, file)
		}
	}
	t.Logf("%d files by hand: %q", len(byHand), byHand)
	t.Logf("%d files are generated: %q", len(others), others)
	t.Logf("%d files are recorded: %q", len(recorded), recorded)
	if len(byHand) > maxOthers {
		t.Errorf("an author changes %d other files, want at most %d", len(byHand), maxOthers)
	}
	for _, file := range others {
		if slices.Contains(byHand, file) || slices.Contains(recorded, file) {
			t.Errorf("%s is generated, and this test takes it for a file that is written by hand or recorded", file)
		}
	}
	text := read(t, filepath.Join(repository, guide))
	for _, file := range slices.Concat(byHand, recorded) {
		if pkg := "./" + strings.Split(file, "/testdata")[0]; !strings.Contains(text, filepath.Base(file)) && !strings.Contains(text, pkg) && file != "docs/providers/conformance.md" {
			t.Errorf("%s does not name %s", guide, file)
		}
	}

	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "./apis/"+added+"/...", "./internal/controller/"+added, "./test/fakes/"+added)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the new cloud does not compile: %v\n%s", err, out)
	}
}

// listsByHand are files that name many clouds and are no lists of them, or are not read by anything, by path or prefix of
// it.
var listsByHand = map[string]string{
	"CHANGELOG.md":             "tells what was added to each cloud",
	"docs/providers/fields.md": "compares the fields of each cloud with those of other projects",
	"docs/decisions/":          "tells what held when it was decided",
}

// TestNoListOfCloudsIsWrittenByHand finds a list of clouds that an author would have to know and to complete.
func TestNoListOfCloudsIsWrittenByHand(t *testing.T) {
	// Names of clouds on one frame: a text about clouds in general names fewer of them.
	names := map[string]*regexp.Regexp{}
	for _, c := range clouds.All() {
		if c.Frame == clouds.Native {
			names[c.Name] = regexp.MustCompile(`(?i)\b(provider-)?(` + c.Name + `|` + regexp.QuoteMeta(c.Title) + `)\b`)
		}
	}
	const window, atLeast = 12, 4
	generated := regexp.MustCompile(`(?s)<!-- clouds: [\w ]+ -->.*?<!-- end -->|(?-s: # clouds: .*)`)
	for file, content := range contentsOf(t, repository) {
		if isExcused(file) || bytes.IndexByte(content, 0) >= 0 {
			continue
		}
		if isGenerated(content) {
			continue
		}
		text := string(content)
		if list.MatchString(text) && !slices.Contains(filesWithLists, file) || part.MatchString(text) && !slices.Contains(pagesWithParts, file) {
			t.Errorf("%s has a list that names its source, and cloudgen does not write it: add the file to filesWithLists or pagesWithParts", file)
		}
		text = list.ReplaceAllString(text, "")
		text = generated.ReplaceAllString(text, "")
		lower, mentioned := strings.ToLower(text), 0
		for name := range names {
			if strings.Contains(lower, name) || strings.Contains(lower, strings.ToLower(clouds.Named(name).Title)) {
				mentioned++
			}
		}
		if mentioned < atLeast {
			continue
		}
		lines := strings.Split(text, "\n")
		last := map[string]int{}
		for i, line := range lines {
			near := 0
			for name, pattern := range names {
				if pattern.MatchString(line) {
					last[name] = i + 1
				}
				if last[name] > 0 && i+1-last[name] < window {
					near++
				}
			}
			if near >= atLeast {
				t.Errorf("%s:%d: a list of clouds: generate it from their entries, make a file of each, or let each register itself", file, i+1)
				break
			}
		}
	}
}

// isGenerated reports whether the head of a file says so.
func isGenerated(content []byte) bool {
	head := content[:min(len(content), 300)]
	return bytes.Contains(head, []byte("Code generated")) || bytes.Contains(head, []byte("Generated from"))
}

func isExcused(file string) bool {
	if slices.Contains(recorded, file) || strings.HasPrefix(file, "internal/cloudgen/") {
		return true
	}
	for prefix := range listsByHand {
		if strings.HasPrefix(file, prefix) {
			return true
		}
	}
	return false
}

// filesOfTheGuide returns the first column of the guide's table of the files of a cloud.
func filesOfTheGuide(t *testing.T) []string {
	t.Helper()
	_, table, ok := strings.Cut(read(t, filepath.Join(repository, guide)), "\n| files of the cloud | content |\n|---|---|\n")
	if !ok {
		t.Fatalf("%s has no table of the files of a cloud", guide)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var out []string
	for row := range strings.SplitSeq(table, "\n") {
		m := regexp.MustCompile("^\\| `([^`]*NAME[^`]*)` \\|").FindStringSubmatch(row)
		if m == nil {
			t.Fatalf("%s: the row has no path with NAME: %s", guide, row)
		}
		out = append(out, m[1])
	}
	return out
}

// isOf reports whether a file is one of the patterns for a cloud. A pattern that ends with / is a folder.
func isOf(file string, patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		pattern = strings.ReplaceAll(pattern, "NAME", name)
		return file == pattern || strings.HasSuffix(pattern, "/") && strings.HasPrefix(file, pattern)
	})
}

// copyModel writes the files of a pattern below a root, as those of the model are.
func copyModel(t *testing.T, repository map[string][]byte, root, pattern string) {
	t.Helper()
	n := 0
	for file, content := range repository {
		from := []string{pattern}
		if pattern == "docs/providers/NAME.md" {
			from = []string{"docs/providers/" + clouds.Named(model).Page}
		}
		if !isOf(file, from, model) {
			continue
		}
		n++
		text := renamed.Replace(string(content))
		if strings.HasSuffix(file, "/cloud.yaml") {
			text = strings.Replace(text, "page: "+added+".md\n", "", 1)
		}
		write(t, filepath.Join(root, renamed.Replace(file)), text)
	}
	if n == 0 {
		t.Errorf("%s names %s, and %s has no such file", guide, pattern, model)
	}
}

// copyOfTheRepository copies it without what git and make have there.
func copyOfTheRepository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for file, content := range contentsOf(t, repository) {
		write(t, filepath.Join(root, file), string(content))
	}
	return root
}

// contentsOf reads all files below a root.
func contentsOf(t *testing.T, root string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == ".work") {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || d.Name() == ".git" {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		out[filepath.ToSlash(rel)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// differences returns the files that differ, in order.
func differences(a, b map[string][]byte) []string {
	var out []string
	for file, content := range b {
		if before, ok := a[file]; !ok || !bytes.Equal(before, content) {
			out = append(out, file)
		}
	}
	for file := range a {
		if _, ok := b[file]; !ok {
			out = append(out, file)
		}
	}
	slices.Sort(out)
	return out
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
