package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWhatATestReadsIsFoundInItsLog(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{"Makefile", "docs/faq.md", "docs/providers/aws.md", "examples/local/pool.yaml", "test/release/x_test.go", "test/release/testdata/a", ".work/bin/xpkg"} {
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(root, "test", "release")
	testlog := filepath.Join(t.TempDir(), "log")
	text := `# test log
getenv HOME
open testdata/a
open ../../Makefile
open ../../docs/faq.md
open ../../docs/missing.md
open ../../docs
stat ../../README.md
chdir ` + root + `
open examples/local/pool.yaml
open docs/providers/aws.md
open .work/bin/xpkg
open /etc/passwd
`
	if err := os.WriteFile(testlog, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readsOf(testlog, dir, root)
	if want := []string{"Makefile", "docs/faq.md", "docs/providers", "examples/local"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("it reads %q, %v, want %q", got, err, want)
	}
}

func TestAReadThatNoEntryCoversIsMissing(t *testing.T) {
	records := []Spent{
		{Name: "test/release", Reads: []string{"Makefile", "docs/faq.md", "examples/local"}},
		{Name: "test/docs", Reads: []string{"docs/faq.md"}},
		{Name: "internal/names"},
	}
	reads := map[string][]string{"test/release": {"examples", "Makefile"}, "test/docs": {"docs"}}
	if got, want := missingReads(records, reads), []string{"test/release docs/faq.md"}; !slices.Equal(got, want) {
		t.Errorf("missing are %q, want %q", got, want)
	}
}
