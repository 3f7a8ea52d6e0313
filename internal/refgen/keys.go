package main

import (
	"fmt"
	"go/constant"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/clouds"
)

// keyFolders returns the packages with keys, in the order of the page.
func keyFolders() []string {
	out := []string{"apis/machine/v1alpha1", "apis/cluster/v1alpha1"}
	for _, c := range clouds.All() {
		// The types of other clouds are generated, and have no constants.
		if c.Frame == clouds.Native || c.Frame == clouds.Own {
			out = append(out, "apis/"+c.Name+"/v1alpha1")
		}
	}
	return append(out, "internal/jointoken", "internal/kubectl/view", "internal/move", "internal/controller/packageguard", "internal/controller/terraform")
}

// A keyKind is a kind of keys, which the names of its constants begin with.
type keyKind struct {
	prefix, title string
	// subject of the meaning, in place of the name of the constant.
	subject string
	intro   string
}

var keyKinds = []keyKind{
	{"label", "Labels", "This label", ""},
	{"annotation", "Annotations", "This annotation", ""},
	{"hook", "Hooks", "A hook of this prefix", "Annotations of a Machine: the prefix, and a name of your own after it. See [deleting](../user-guide.md#deleting)."},
	{"taint", "Taints", "This taint", "Taints of Nodes. Drover puts no other taints on Nodes than these and those of the Machine's spec."},
	{"finalizer", "Finalizers", "This finalizer", "Crossplane and the providers of VMs have finalizers of their own. Remove none by hand while a VM exists: nothing deletes the VM then."},
	{"tag", "Tags of VMs", "This tag", "Tags, or what the cloud calls so, of each VM that Drover makes."},
}

// A key is a label, an annotation, a taint, a finalizer or a tag of an object.
type key struct {
	declaration
	kind keyKind
	text string
}

const keysIntro = `# Labels, annotations, taints, finalizers and tags

<!-- Generated from the constants in the code by "make generate". Do not edit. -->

The keys that Drover writes or reads. Keys that a user may set are described with their effect. All others belong to Drover: do not
change or remove them. ` + "`kubectl drover`" + ` writes the most common ones: see [change Machines](../kubectl-drover.md#change-machines).
`

// renderKeys returns the page of all keys.
func renderKeys(s *source) (string, error) {
	keys, err := allKeys(s)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString(keysIntro)
	for _, kind := range keyKinds {
		fmt.Fprintf(&out, "\n## %s\n", kind.title)
		if kind.intro != "" {
			fmt.Fprintf(&out, "\n%s\n", kind.intro)
		}
		out.WriteString("\n| key | meaning |\n|---|---|\n")
		for _, row := range rows(keys, kind) {
			fmt.Fprintf(&out, "| %s | %s |\n", codes(row.keys), cell(row.text))
		}
	}
	return out.String(), nil
}

// A keyRow is a row of a table. It has several keys if their constants share a comment.
type keyRow struct {
	keys []string
	text string
}

// rows of a kind by their first keys. A key that several packages declare is that of the first one.
func rows(keys []key, kind keyKind) []keyRow {
	var out []keyRow
	seen, comment := map[string]bool{}, ""
	for _, k := range keys {
		value := constant.StringVal(k.value)
		if k.kind != kind || seen[value] {
			continue
		}
		seen[value] = true
		if len(out) > 0 && k.comment == comment {
			out[len(out)-1].keys = append(out[len(out)-1].keys, value)
			continue
		}
		comment = k.comment
		out = append(out, keyRow{keys: []string{value}, text: k.text})
	}
	slices.SortFunc(out, func(a, b keyRow) int { return strings.Compare(a.keys[0], b.keys[0]) })
	return out
}

// allKeys of the code. It fails for one without a comment.
func allKeys(s *source) ([]key, error) {
	var out []key
	for _, folder := range keyFolders() {
		p, err := s.load(folder)
		if err != nil {
			return nil, err
		}
		all := s.declarations(p)
		for _, d := range all {
			kind, ok := kindOf(d)
			if !ok {
				continue
			}
			text := describe(d, kind, all)
			if text == "" {
				return nil, fmt.Errorf("%s: the constant %s has no comment", folder, d.name)
			}
			out = append(out, key{declaration: d, kind: kind, text: text})
		}
	}
	return out, nil
}

// kindOf the key that a constant is.
func kindOf(d declaration) (keyKind, bool) {
	if d.value.Kind() != constant.String {
		return keyKind{}, false
	}
	for _, k := range keyKinds {
		rest, ok := strings.CutPrefix(strings.ToLower(d.name[:1])+d.name[1:], k.prefix)
		isKey := strings.Contains(constant.StringVal(d.value), "/") || k.prefix == "tag" || d.name == "LabelProvider"
		if ok && rest != "" && strings.ToUpper(rest[:1]) == rest[:1] && isKey {
			return k, true
		}
	}
	return keyKind{}, false
}

var identifier = regexp.MustCompile(`\b[A-Za-z]\w+\b`)

// describe a key by the comment of its constant, with values in place of the names of constants.
func describe(d declaration, kind keyKind, all []declaration) string {
	values := map[string]string{}
	for _, other := range all {
		if other.value.Kind() == constant.String && strings.ContainsFunc(other.name[1:], func(r rune) bool { return r >= 'A' && r <= 'Z' }) {
			values[other.name] = constant.StringVal(other.value)
		}
	}
	text := strings.Join(strings.Fields(d.comment), " ")
	if rest, ok := strings.CutPrefix(text, d.name); ok && isPredicate(rest) {
		text = kind.subject + rest
	}
	return identifier.ReplaceAllStringFunc(text, func(word string) string {
		if v, ok := values[word]; ok {
			return "`" + v + "`"
		}
		return word
	})
}

// isPredicate reports whether the rest of a comment is about one constant, and not about several.
func isPredicate(rest string) bool {
	return strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, " and ") || strings.HasPrefix(rest, ", \"")
}

// cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(text)
}
