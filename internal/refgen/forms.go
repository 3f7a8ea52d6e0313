package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/drover-dev/drover/internal/schemabounds"
)

// apiPage is the reference of the API.
const apiPage = "docs/reference/api.md"

// A pattern as crd-ref-docs writes it into a cell of a table, or below a type. "items:" stands before that of the elements of a list.
var ofPattern = regexp.MustCompile("(<br>)?(items:)?Pattern: `(.*?[^\\\\])`([.|<\n ]|$)")

func rewriteAPI(root string) error {
	file := filepath.Join(root, apiPage)
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(withForms(string(page))), 0o644)
}

// withForms replaces each pattern of a page by the message that the API server has for it. The head of the page has the
// message for durations. A pattern without a message is one of a status, and stays.
func withForms(page string) string {
	duration := "Pattern: `" + strings.ReplaceAll(schemabounds.Duration, "|", `\|`) + "`"
	page = strings.NewReplacer(duration+"<br>", "", "<br>"+duration, "", duration, "").Replace(page)
	return ofPattern.ReplaceAllStringFunc(page, func(found string) string {
		part := ofPattern.FindStringSubmatch(found)
		form, ok := schemabounds.Forms[strings.ReplaceAll(part[3], `\|`, "|")]
		if !ok {
			return found
		}
		of := part[2]
		if of != "" {
			of += " "
		}
		return part[1] + of + cell(strings.ReplaceAll(form.Message(), "*", `\*`)) + part[4]
	})
}
