package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Read returns the blocks of all pages of a repository that users read, in the order of their paths.
func Read(root string) ([]Block, error) {
	var blocks []Block
	for _, page := range pages(root) {
		b, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			return nil, err
		}
		of, err := Extract(page, string(b))
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, of...)
	}
	return blocks, nil
}

// pages returns README.md, CONTRIBUTING.md, SECURITY.md, the pages below docs, and the READMEs of
// examples and of the local cluster, without the decisions. Those are history.
func pages(root string) []string {
	out := []string{"CONTRIBUTING.md", "README.md", "SECURITY.md"}
	for _, dir := range []string{"docs", "examples", "cluster"} {
		_ = filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			page, err := filepath.Rel(root, path)
			if err == nil && filepath.Ext(page) == ".md" && !strings.HasPrefix(page, "docs/decisions/") {
				out = append(out, page)
			}
			return err
		})
	}
	slices.Sort(out)
	return out
}
