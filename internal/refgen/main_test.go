package main

import (
	"go/constant"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// code is the source that the tests read. It is loaded once.
var code = newSource(root)

// TestPagesAreGenerated fails when the code was changed and "make generate" was not run.
func TestPagesAreGenerated(t *testing.T) {
	s := code
	for path, render := range pages {
		want, err := render(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != want {
			t.Errorf("%s differs from the code: run make generate", path)
		}
	}
}

// noKeys are strings that look like keys, and are none: what steps pass on in the context of a
// pipeline, groups with versions, and the registry of the packages.
var noKeys = regexp.MustCompile(`^drover\.dev/(decided|started|safety|bootstrap|virtual-machine|join|inventory|missing-provider-config|node|rollout-gate)$|/v1(alpha\d)?$|^xpkg\.`)

// TestEveryKeyOfTheCodeIsOnThePage looks at each constant string of the code, also at those that no
// declaration has.
func TestEveryKeyOfTheCodeIsOnThePage(t *testing.T) {
	isKey := regexp.MustCompile(`^([a-z-]+\.)*drover\.dev/[a-z-]+$|\.hook\.machine\.drover\.dev/$`)
	page, s, found := read(t, "docs/reference/labels.md"), code, 0
	for _, top := range []string{"apis", "cmd", "config", "internal"} {
		for _, folder := range foldersOf(t, top) {
			p, err := s.load(folder)
			if err != nil {
				t.Fatal(err)
			}
			for e, v := range p.info.Types {
				if v.Value == nil || v.Value.Kind() != constant.String {
					continue
				}
				text := constant.StringVal(v.Value)
				if !isKey.MatchString(text) || noKeys.MatchString(text) {
					continue
				}
				found++
				if !strings.Contains(page, "`"+text+"`") {
					t.Errorf("%s: docs/reference/labels.md lacks %s", s.files.Position(e.Pos()), text)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d keys were found", found)
	}
}

// foldersOf returns the folders with Go code below a folder.
func foldersOf(t *testing.T, top string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				folder, err := filepath.Rel(root, path)
				out = append(out, folder)
				return err
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDescribe(t *testing.T) {
	text := func(s string) declaration {
		name, comment, _ := strings.Cut(s, ":")
		return declaration{name: name, comment: comment, value: constant.MakeString("drover.dev/" + strings.ToLower(name))}
	}
	all := []declaration{text("LabelSet:"), text("LabelPool:")}
	for name, tc := range map[string]struct{ comment, want string }{
		"the subject takes the place of the name":        {"LabelSet names\na set.\n", "This label names a set."},
		"a value may follow the name":                    {`LabelSet, "true" on a set, holds it.`, `This label, "true" on a set, holds it.`},
		"several names are replaced by their values":     {"LabelSet and LabelPool name both.", "`drover.dev/labelset` and `drover.dev/labelpool` name both."},
		"other names in the text are replaced as well":   {"LabelSet goes before LabelPool.", "This label goes before `drover.dev/labelpool`."},
		"a word that only begins like a name is no name": {"LabelSets are many.", "LabelSets are many."},
	} {
		t.Run(name, func(t *testing.T) {
			d := text("LabelSet:" + tc.comment)
			if got := describe(d, keyKinds[0], all); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAKeyWithoutCommentIsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range keyFolders() {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, "keys.go"), []byte("package p\n\nconst (\n\t// LabelA is a.\n\tLabelA = \"x/a\"\n\n\tLabelB = \"x/b\"\n)\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := allKeys(newSource(dir)); err == nil || !strings.Contains(err.Error(), "the constant LabelB has no comment") {
		t.Errorf("got %v", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
