// Command cloudgen writes the files, and the parts of files, that follow from the entries of the clouds,
// apis/NAME/cloud.yaml:
//
//   - the API types that each cloud has in a group of its own and that are the same for all: inventories of VMs, and
//     configurations. Methods, schemas and deep copies are made of these types by the commands that apis/generate.go and
//     config/generate.go run;
//   - the rights of provider-drover and provider-inventory, and the metadata of packages;
//   - lists in files that are written by hand: lines of YAML that end with "# clouds: ...", and parts of Markdown
//     between "<!-- clouds: NAME -->" and "<!-- end -->";
//   - the scheme of all kinds, in internal/schematest.
//
// It is run by go generate in the apis folder.
package main

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/drover-dev/drover/internal/clouds"
)

//go:embed templates
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"comment": comment,
	"lines":   lines,
	"join":    strings.Join,
	// The name of a cloud may have a hyphen, an identifier of Go not.
	"identifier": func(name string) string { return strings.ReplaceAll(name, "-", "") },
	"kind": func(c typesOf, kind, scope string) map[string]any {
		return map[string]any{"Cloud": c, "Kind": kind, "Scope": scope}
	},
}).ParseFS(files, "templates/*.tmpl"))

func main() {
	if err := run("..", clouds.All()); err != nil {
		fmt.Fprintln(os.Stderr, "cloudgen:", err)
		os.Exit(1)
	}
}

// run writes all files below the root of the repository.
func run(root string, all []clouds.Cloud) error {
	for _, c := range all {
		if err := writeTypes(root, c); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		if err := writeManifests(root, c); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	if err := execute(filepath.Join(root, "package/provider-drover/rbac-inventory.yaml"), "rbac-inventory.yaml", published(all)); err != nil {
		return err
	}
	if err := execute(filepath.Join(root, "internal/schematest/kinds.go"), "kinds.go", all); err != nil {
		return err
	}
	for _, file := range filesWithLists {
		if err := rewrite(filepath.Join(root, file), func(text string) (string, error) { return fillLists(text, all) }); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	for _, file := range pagesWithParts {
		if err := rewrite(filepath.Join(root, file), func(text string) (string, error) {
			return fillParts(text, partsOf(root, filepath.Dir(file), all))
		}); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// execute a template, and write its output to a file.
func execute(file, name string, data any) error {
	b := &bytes.Buffer{}
	if err := templates.ExecuteTemplate(b, name+".tmpl", data); err != nil {
		return err
	}
	out := b.Bytes()
	if filepath.Ext(file) == ".go" {
		var err error
		if out, err = format.Source(out); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return os.WriteFile(file, out, 0o644)
}

// rewrite changes the text of a file.
func rewrite(file string, change func(string) (string, error)) error {
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	after, err := change(string(before))
	if err != nil || after == string(before) {
		return err
	}
	return os.WriteFile(file, []byte(after), 0o644)
}
