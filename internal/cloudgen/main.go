// Command cloudgen writes the API types that each cloud has in a group of its own and that are
// the same for all: inventories of VMs, and configurations. A cloud is an entry of the table in
// clouds.go. Methods, schemas and deep copies are made of these types by the commands that
// apis/generate.go and config/generate.go run.
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
)

//go:embed templates
var files embed.FS

// width of a comment.
const width = 90

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"comment": comment,
	"lines":   lines,
	"kind": func(c cloud, kind, scope string) map[string]any {
		return map[string]any{"Cloud": c, "Kind": kind, "Scope": scope}
	},
}).ParseFS(files, "templates/*.tmpl"))

func main() {
	for _, c := range clouds {
		if err := write(c, filepath.Join(c.Name, "v1alpha1")); err != nil {
			fmt.Fprintf(os.Stderr, "cloudgen: %s: %v\n", c.Name, err)
			os.Exit(1)
		}
	}
}

func write(c cloud, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	names := []string{"providerconfig_types.go", "virtualmachineinventory_types.go"}
	if c.ClusterOnly {
		c.GroupVersion = handWritten
		names = append(names, "groupversion_info.go")
	}
	for _, name := range names {
		b := &bytes.Buffer{}
		if err := templates.ExecuteTemplate(b, name+".tmpl", c); err != nil {
			return err
		}
		source, err := format.Source(b.Bytes())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), source, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// comment of a field, in lines that are not too long.
func comment(words ...string) string {
	var b strings.Builder
	line := "\t//"
	for _, w := range strings.Fields(strings.Join(words, "")) {
		if len(line)+1+len(w) > width {
			b.WriteString(line + "\n")
			line = "\t//"
		}
		line += " " + w
	}
	return b.String() + line
}

// lines of a Go source, or of markers, with an indent.
func lines(source, indent string) string {
	var b []string
	for _, l := range strings.Split(strings.TrimSpace(source), "\n") {
		if indent == "" {
			l = "// " + l
		}
		b = append(b, indent+l)
	}
	return strings.Join(b, "\n")
}
