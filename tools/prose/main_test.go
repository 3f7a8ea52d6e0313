package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes files, and returns the folder that has them.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestRun(t *testing.T) {
	files := map[string]string{
		"a/b/c/x.go":            "package c\n\n// X says one thing.\n// It says another.\nvar X int\n",
		"a/b/c/x_test.go":       "package c\n\n// It was told.\n",
		"a/b/c/testdata/y.go":   "package c\n\n// Y says nothing.\nvar Y int\n",
		"docs/x.md":             "A page.\n",
		".work/z.md":            "Z says nothing.\n",
		"limits.txt":            "a/b 2000 0 0 0 0\n",
		"strict.txt":            "a/b 0 0 0 0 0\n",
		"docs/decisions/one.md": "It is told.\n",
	}
	cases := map[string]struct {
		reason  string
		options options
		want    []string
		absent  []string
		err     string
	}{
		"the table by folder": {
			reason:  "A folder has two levels; data of tests and hidden folders do not count.",
			options: options{by: "folder"},
			want:    []string{"a/b  ", "docs  ", "docs/decisions  ", "all  "},
			absent:  []string{"testdata", ".work", "a/b/c"},
		},
		"the table by file": {reason: "Each file is a row.", options: options{by: "file"}, want: []string{"a/b/c/x.go ", "a/b/c/x_test.go "}},
		"without tests":     {reason: "The rows of tests are left out.", options: options{by: "file", skipTests: true}, want: []string{"a/b/c/x.go "}, absent: []string{"x_test.go"}},
		"pages only":        {reason: "Go files are left out.", options: options{by: "file", only: "md"}, want: []string{"docs/x.md"}, absent: []string{"x.go"}},
		"the lines":         {reason: "Each match has its place.", options: options{by: "folder", show: "say"}, want: []string{"a/b/c/x.go:3: X says one thing.", "a/b/c/x.go:4:"}, absent: []string{"all"}},
		"all lines":         {reason: "All measures are shown together.", options: options{by: "folder", show: "all"}, want: []string{"a/b/c/x.go:3:", "a/b/c/x_test.go:3:"}},
		"within the limits": {reason: "A limit of a folder is its own.", options: options{by: "folder", limits: "limits.txt"}, want: []string{"all"}},
		"above the limits":  {reason: "The folder, the measure, the rate and the limit are named.", options: options{by: "folder", limits: "strict.txt"}, err: `a/b: "say": 2 matches in 3 lines, 666.7 per 1000 lines: must be at most 0`},
		"an unknown row":    {reason: "The error has what is allowed.", options: options{by: "line"}, err: `-by "line": must be one of folder, package and file`},
		"limits of a part":  {reason: "Limits of folders do not fit a part of them.", options: options{by: "folder", limits: "limits.txt", only: "go"}, err: "must not be together with"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := tree(t, files)
			if tc.options.limits != "" {
				tc.options.limits = filepath.Join(root, tc.options.limits)
			}
			var out bytes.Buffer
			err := run(&out, root, tc.options)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s\nerror %v, want %q", tc.reason, err, tc.err)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%s\nno %q in\n%s", tc.reason, want, &out)
				}
			}
			for _, absent := range tc.absent {
				if strings.Contains(out.String(), absent) {
					t.Errorf("%s\n%q in\n%s", tc.reason, absent, &out)
				}
			}
		})
	}
}

func TestTightenWritesTheFile(t *testing.T) {
	root := tree(t, map[string]string{"a/x.md": "It says so.\nIt says so.\nA.\nA.\n", "limits.txt": ""})
	limits := filepath.Join(root, "limits.txt")
	if err := run(&bytes.Buffer{}, root, options{by: "folder", limits: limits, tighten: true}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(limits)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "a                                    505       2       7       5       2") {
		t.Errorf("got\n%s", b)
	}
}
