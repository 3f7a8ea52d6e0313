package main

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/clouds"
)

// pagesWithParts are written by hand except for the parts between "<!-- clouds: NAME -->" and "<!-- end -->".
var pagesWithParts = []string{
	"README.md",
	"docs/README.md",
	"docs/autoscaler.md",
	"docs/health.md",
	"docs/install.md",
	"docs/providers/README.md",
	"docs/releases.md",
}

var part = regexp.MustCompile(`(?s)<!-- clouds: ([\w ]+) -->(.*?)<!-- end -->`)

// fillParts writes all parts of a page.
func fillParts(text string, of map[string]string) (string, error) {
	if !part.MatchString(text) {
		return "", fmt.Errorf("no part begins with <!-- clouds: ... -->")
	}
	var err error
	return part.ReplaceAllStringFunc(text, func(s string) string {
		name := part.FindStringSubmatch(s)[1]
		content, ok := of[name]
		if !ok {
			err = fmt.Errorf("<!-- clouds: %s -->: there is no such part", name)
		}
		return "<!-- clouds: " + name + " -->" + content + "<!-- end -->"
	}), err
}

// partsOf pages in a folder, by name. A part of several lines is a table.
func partsOf(root, folder string, all []clouds.Cloud) map[string]string {
	byTitle := slices.Clone(all)
	slices.SortFunc(byTitle, func(a, b clouds.Cloud) int {
		return cmp.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title))
	})
	var titles, links, names, publishedTitles, rebootLinks, hardOnly, providers []string
	for _, c := range byTitle {
		link := fmt.Sprintf("[%s](%s)", c.Title, relative(folder, "docs/providers/"+c.Page))
		if isOfTheList(c) {
			titles, links = append(titles, c.Title), append(links, link)
		}
		if c.Frame == clouds.Published {
			publishedTitles = append(publishedTitles, c.Title)
		}
		if isOfTheList(c) && canReboot(root, c) {
			rebootLinks = append(rebootLinks, link)
		}
		if c.Conformance.HardRebootOnly {
			hardOnly = append(hardOnly, c.Sentence)
		}
	}
	for _, c := range all {
		if c.Configuration != nil {
			names = append(names, "`"+c.Name+"`")
		}
		if c.Frame != clouds.Published {
			providers = append(providers, "`"+c.Provider()+"`")
		}
	}
	return map[string]string{
		"titles":           strings.Join(titles, ", "),
		"links":            strings.Join(links, ", "),
		"names":            and(names),
		"published":        and(publishedTitles),
		"can reboot":       and(rebootLinks),
		"hard reboot only": and(hardOnly),
		"providers":        strings.Join(providers, ", "),
		"table":            table(folder, byTitle),
		"capacities":       cells("| cloud | derived from |", byTitle, func(d clouds.Docs) string { return d.Capacity }),
		"consoles":         cells("| cloud | console |", byTitle, func(d clouds.Docs) string { return d.Console }),
	}
}

// isOfTheList reports whether a cloud is one of those that users look for: not the local cloud, and not the way to
// any cloud by Terraform.
func isOfTheList(c clouds.Cloud) bool {
	return !c.BuiltIn && !c.Unguarded || c.Frame == clouds.Published
}

// canReboot reports whether the Composition of a cloud's Machines has reboots.
func canReboot(root string, c clouds.Cloud) bool {
	b, err := os.ReadFile(filepath.Join(root, "apis/machine/compositions/machine-"+c.Name+".yaml"))
	return err == nil && strings.Contains(string(b), "\n          reboot: true\n")
}

// table of the clouds, with the examples.
func table(folder string, all []clouds.Cloud) string {
	b := &strings.Builder{}
	b.WriteString("\n\n| cloud | VM resource | class | [user data](#user-data) |\n|---|---|---|---|\n")
	for _, c := range all {
		if !isOfTheList(c) {
			continue
		}
		cloud := fmt.Sprintf("[%s](%s)", c.Title, relative(folder, "docs/providers/"+c.Page))
		if c.Docs.Note != "" {
			cloud += ", " + c.Docs.Note
		}
		fmt.Fprintf(b, "| %s | %s | [examples/%s](%s) | %s |\n", cloud, c.Docs.VM, c.Name, relative(folder, "examples/"+c.Name), c.Docs.UserData)
	}
	return b.String() + "\n"
}

// cells returns a table with a cell of each cloud that has one. Clouds with the same cell share a row.
func cells(header string, all []clouds.Cloud, of func(clouds.Docs) string) string {
	var order []string
	titles := map[string][]string{}
	for _, c := range all {
		cell := of(c.Docs)
		if cell == "" {
			continue
		}
		if titles[cell] == nil {
			order = append(order, cell)
		}
		titles[cell] = append(titles[cell], c.Title)
	}
	b := &strings.Builder{}
	b.WriteString("\n\n" + header + "\n|---|---|\n")
	for _, cell := range order {
		fmt.Fprintf(b, "| %s | %s |\n", strings.Join(titles[cell], ", "), cell)
	}
	return b.String() + "\n"
}

// relative returns the path of a file from a folder, both from the root.
func relative(folder, file string) string {
	rel, err := filepath.Rel(filepath.FromSlash(path.Clean(folder)), filepath.FromSlash(file))
	if err != nil {
		panic(err) // Both are relative.
	}
	return filepath.ToSlash(rel)
}

// and joins words as a sentence does.
func and(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
