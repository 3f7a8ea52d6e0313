// Command refgen writes the pages of docs/reference that list declarations of the code: the keys of
// objects, the metrics and the flags. It reads the source.
//
// The reference of the API has crd-ref-docs, by the templates in tools/refdocs. With the argument "forms", refgen
// replaces the patterns in it by the messages of the schemas. Conditions and events have internal/conditionsgen.
//
// It is run by go generate in the apis folder.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// pages by their paths in the repository.
var pages = map[string]func(*source) (string, error){
	"docs/reference/labels.md":  renderKeys,
	"docs/reference/metrics.md": renderMetrics,
	"docs/reference/flags.md":   renderFlags,

	"docs/reference/health-profiles.md": renderHealthProfiles,
}

func main() {
	generate := run
	if len(os.Args) == 2 && os.Args[1] == "forms" {
		generate = rewriteAPI
	}
	if err := generate(".."); err != nil {
		fmt.Fprintln(os.Stderr, "refgen:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	s := newSource(root)
	for path, render := range pages {
		text, err := render(s)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
