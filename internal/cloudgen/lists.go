package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/clouds"
)

// filesWithLists are written by hand except for the lists that end with "# clouds: ...".
var filesWithLists = []string{
	"package/provider-drover/rbac-users.yaml",
	"package/provider-drover/rbac-policies.yaml",
	"package/policies/control-cluster.yaml",
	"tools/refdocs/config.yaml",
}

// list is a list of YAML in one line, with the elements that it is made of in a comment: words, in which {guarded},
// for example, stands for the name of each guarded cloud.
var list = regexp.MustCompile(`(?m)^( *(?:- )?\w+: )\[.*\] # clouds: (.*)$`)

// fillLists writes the elements of all lists of a text.
func fillLists(text string, all []clouds.Cloud) (string, error) {
	if !list.MatchString(text) {
		return "", fmt.Errorf(`no list ends with "# clouds: ..."`)
	}
	var err error
	return list.ReplaceAllStringFunc(text, func(line string) string {
		m := list.FindStringSubmatch(line)
		var elements []string
		for element := range strings.SplitSeq(m[2], ", ") {
			of, unknown := expand(element, all)
			if unknown != nil {
				err = unknown
			}
			elements = append(elements, of...)
		}
		return m[1] + "[" + strings.Join(elements, ", ") + "] # clouds: " + m[2]
	}), err
}

var variable = regexp.MustCompile(`\{[a-z -]*\}`)

// expand returns an element once for each value of its variable.
func expand(element string, all []clouds.Cloud) ([]string, error) {
	v := variable.FindString(element)
	var values []string
	add := func(c clouds.Cloud) { values = append(values, c.Name) }
	for _, c := range all {
		switch {
		case v == "{all}":
			add(c)
		case v == "{guarded}" && c.IsGuarded():
			add(c)
		case v == "{with companions}" && c.IsGuarded() && len(c.Companions) > 0:
			add(c)
		case v == "{companion}" && c.IsGuarded():
			for _, companion := range c.Companions {
				if !slices.Contains(values, companion) {
					values = append(values, companion)
				}
			}
		}
	}
	switch v {
	case "":
		return []string{element}, nil
	case "{all}", "{guarded}", "{with companions}", "{companion}":
		for i, value := range values {
			values[i] = strings.Replace(element, v, value, 1)
		}
		return values, nil
	}
	return nil, fmt.Errorf("# clouds: %s: unknown variable: must be {all}, {guarded}, {with companions} or {companion}", element)
}
