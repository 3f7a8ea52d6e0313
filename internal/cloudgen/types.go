package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-dev/drover/internal/clouds"
)

// typesOf a cloud, for the templates.
type typesOf struct {
	clouds.Cloud
	// GroupVersion is the variable of the group and version: upjet has its own name for it.
	GroupVersion string
	// Kinds declares the kinds of configurations as constants.
	Kinds bool
	// Generated means that the group has no types beside the generated ones.
	Generated bool
}

// writeTypes writes the types of configurations and inventories, unless they are written by hand.
func writeTypes(root string, c clouds.Cloud) error {
	if c.Configuration == nil {
		return nil
	}
	t := typesOf{Cloud: c, GroupVersion: "SchemeGroupVersion", Generated: c.Frame == clouds.Published}
	if c.Frame == clouds.Lifted {
		t.GroupVersion, t.Kinds = "CRDGroupVersion", true
	}
	names := []string{"providerconfig_types.go", "virtualmachineinventory_types.go"}
	if t.Generated {
		names = append(names, "groupversion_info.go")
	}
	dir := filepath.Join(root, "apis", c.Name, "v1alpha1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		if err := execute(filepath.Join(dir, name), name, t); err != nil {
			return err
		}
	}
	return nil
}

// width of a comment.
const width = 90

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
