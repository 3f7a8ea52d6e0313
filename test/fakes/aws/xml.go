package aws

import (
	"encoding/xml"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A node is an element of a response.
type node struct {
	name, text string
	children   []node
}

func text(name, value string) node            { return node{name: name, text: value} }
func flag(name string, value bool) node       { return text(name, strconv.FormatBool(value)) }
func count(name string, value int) node       { return text(name, strconv.Itoa(value)) }
func with(name string, children ...node) node { return node{name: name, children: children} }

// list returns an element with an item for each entry.
func list[T any](name string, entries []T, item func(T) []node) node {
	out := node{name: name}
	for _, e := range entries {
		out.children = append(out.children, with("item", item(e)...))
	}
	return out
}

func tagSet(tags map[string]string) node {
	return list("tagSet", slices.Sorted(maps.Keys(tags)), func(k string) []node { return []node{text("key", k), text("value", tags[k])} })
}

func (n node) write(b *strings.Builder, namespace string) {
	b.WriteString("<" + n.name)
	if namespace != "" {
		b.WriteString(` xmlns="` + namespace + `"`)
	}
	b.WriteString(">")
	_ = xml.EscapeText(b, []byte(n.text))
	for _, c := range n.children {
		c.write(b, "")
	}
	b.WriteString("</" + n.name + ">")
}

func (n node) document(namespace string) string {
	var b strings.Builder
	b.WriteString(xml.Header)
	n.write(&b, namespace)
	return b.String()
}
