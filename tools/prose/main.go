// Command prose measures the language of comments and docs, and prints a table.
//
//	prose [-by folder|package|file] [-only go|md] [-skip-tests] [-show MEASURE] ROOT
//	prose -limits FILE [-tighten] ROOT
//
// With -limits it fails if a folder exceeds its limits. With -tighten it lowers the limits in the file
// to those that the folders keep, and never raises one.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-dev/drover/tools/prose/dialect"
)

type options struct {
	by, only, limits, show string
	tighten, skipTests     bool
}

func main() {
	var o options
	flag.StringVar(&o.by, "by", "folder", "a row of the table is a folder (of two levels), package or file")
	flag.StringVar(&o.only, "only", "", "read only files that end with this: go or md")
	flag.StringVar(&o.limits, "limits", "", "file of the limits of folders")
	flag.StringVar(&o.show, "show", "", "print the lines that this measure counts, or \"all\", in place of the table")
	flag.BoolVar(&o.tighten, "tighten", false, "lower the limits in the file to those that the folders keep")
	flag.BoolVar(&o.skipTests, "skip-tests", false, "leave out files that end with _test.go")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "ROOT: must be one folder")
		os.Exit(2)
	}
	if err := run(os.Stdout, flag.Arg(0), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string, o options) error {
	if !slices.Contains([]string{"folder", "package", "file"}, o.by) {
		return fmt.Errorf("-by %q: must be one of folder, package and file", o.by)
	}
	if o.limits != "" && (o.only != "" || o.skipTests) {
		return errors.New("-limits: must not be together with -only or -skip-tests: limits are for whole folders")
	}
	rows, folders := map[string]dialect.Counts{}, map[string]dialect.Counts{}
	err := walk(root, o, func(file string, lines []dialect.Line) {
		counts, matches := dialect.Count(lines)
		for _, m := range matches {
			if m.Measure == o.show || o.show == "all" {
				fmt.Fprintf(out, "%s:%d: %s\n", file, m.Line.Number, m.Line.Text)
			}
		}
		rows[row(file, o.by)] = rows[row(file, o.by)].Add(counts)
		folders[row(file, "folder")] = folders[row(file, "folder")].Add(counts)
	})
	if err != nil {
		return err
	}
	if o.show == "" && !o.tighten {
		table(out, rows)
	}
	if o.limits == "" {
		return nil
	}
	return check(folders, o)
}

func check(folders map[string]dialect.Counts, o options) error {
	b, err := os.ReadFile(o.limits)
	if err != nil {
		return err
	}
	limits, err := dialect.ParseLimits(string(b))
	if err != nil {
		return fmt.Errorf("%s: %w", o.limits, err)
	}
	if o.tighten {
		tight, err := limits.Tightened(folders)
		if err != nil {
			return err
		}
		return os.WriteFile(o.limits, []byte(tight.String()), 0o644)
	}
	if violations := limits.Violations(folders); len(violations) > 0 {
		return fmt.Errorf("docs/glossary.md has the words to use; prose -show MEASURE prints the lines:\n%s", strings.Join(violations, "\n"))
	}
	return nil
}

// walk calls visit with the prose of each Go file and page below root.
func walk(root string, o options, visit func(file string, lines []dialect.Line)) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); file != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "vendor" || base == "third_party") {
				return fs.SkipDir
			}
			return nil
		}
		read := map[string]func([]byte) []dialect.Line{".go": dialect.GoComments, ".md": dialect.Markdown}[path.Ext(file)]
		if read == nil || o.only != "" && path.Ext(file) != "."+o.only || o.skipTests && strings.HasSuffix(file, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(file), read(b))
		return nil
	})
}

// row is the row of the table that a file belongs to.
func row(file, by string) string {
	dir := path.Dir(file)
	switch by {
	case "file":
		return file
	case "package":
		return dir
	}
	if parts := strings.Split(dir, "/"); len(parts) > 2 {
		dir = path.Join(parts[:2]...)
	}
	return dir
}

func table(out io.Writer, rows map[string]dialect.Counts) {
	fmt.Fprintf(out, "%-48s %7s", "per 1000 lines", "lines")
	for _, m := range dialect.Measures {
		fmt.Fprintf(out, " %7s", m.Name)
	}
	fmt.Fprintln(out)
	var sum dialect.Counts
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		line(out, name, rows[name])
		sum = sum.Add(rows[name])
	}
	line(out, "all", sum)
}

func line(out io.Writer, name string, c dialect.Counts) {
	if c.Lines == 0 {
		return
	}
	fmt.Fprintf(out, "%-48s %7d", name, c.Lines)
	for _, m := range dialect.Measures {
		fmt.Fprintf(out, " %7.1f", c.Rate(m.Name))
	}
	fmt.Fprintln(out)
}
