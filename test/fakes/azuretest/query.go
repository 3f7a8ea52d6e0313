package azuretest

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// query is one of the Kusto Query Language, of the part that the fake understands:
//
//	resources | where EXPR in~ ('a', 'b') and EXPR == 'c' | project id, name = EXPR | order by id asc
//
// with =~ beside == and in~, and with a path of columns like properties.x or tags['x'] as an
// EXPR, or tostring of one. See
// https://learn.microsoft.com/azure/governance/resource-graph/concepts/query-language.
type query struct {
	conditions []condition
	columns    []column
	order      string
	descending bool
}

type condition struct {
	path     []string
	operator string
	values   []string
}

type column struct {
	name string
	path []string
	text bool
}

// has reports whether the answer has a column.
func (q *query) has(name string) bool {
	return len(q.columns) == 0 || slices.ContainsFunc(q.columns, func(c column) bool { return c.name == name })
}

func (q *query) run(table []map[string]any) []map[string]any {
	out := []map[string]any{}
	for _, row := range table {
		if !slices.ContainsFunc(q.conditions, func(c condition) bool { return !c.holds(row) }) {
			out = append(out, q.project(row))
		}
	}
	if q.order != "" {
		slices.SortStableFunc(out, func(a, b map[string]any) int {
			n := cmp.Compare(asText(a[q.order]), asText(b[q.order]))
			if q.descending {
				return -n
			}
			return n
		})
	}
	return out
}

func (q *query) project(row map[string]any) map[string]any {
	if len(q.columns) == 0 {
		return maps.Clone(row)
	}
	out := map[string]any{}
	for _, c := range q.columns {
		out[c.name] = valueAt(row, c.path)
		if c.text {
			out[c.name] = asText(out[c.name])
		}
	}
	return out
}

func (c condition) holds(row map[string]any) bool {
	got := asText(valueAt(row, c.path))
	return slices.ContainsFunc(c.values, func(want string) bool {
		if c.operator == "==" {
			return got == want
		}
		return strings.EqualFold(got, want)
	})
}

func valueAt(value any, path []string) any {
	for _, key := range path {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[key]
	}
	return value
}

func asText(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// words of a query: a text in quotes, a name, an operator or a sign.
var words = regexp.MustCompile(`'[^'\\]*'|in~|[A-Za-z_][A-Za-z0-9_]*|==|=~|[|(),.=\[\]]|\S`)

type parser struct {
	words []string
	err   error
}

func parse(text string) (*query, error) {
	p, q := &parser{words: words.FindAllString(text, -1)}, &query{}
	if table := p.next(); !strings.EqualFold(table, "resources") {
		return nil, fmt.Errorf("'%s' is not a known table", table)
	}
	for p.err == nil && p.peek() != "" {
		p.want("|")
		switch word := p.next(); word {
		case "where":
			p.list("and", func() { q.conditions = append(q.conditions, p.condition()) })
		case "project":
			p.list(",", func() { q.columns = append(q.columns, p.column()) })
		case "order":
			p.want("by")
			q.order = p.name()
			// The default of the language is desc.
			q.descending = p.peek() != "asc"
			if p.peek() == "asc" || p.peek() == "desc" {
				p.next()
			}
		default:
			p.fail(word)
		}
	}
	return q, p.err
}

func (p *parser) peek() string {
	if len(p.words) == 0 || p.err != nil {
		return ""
	}
	return p.words[0]
}

func (p *parser) next() string {
	word := p.peek()
	if word != "" {
		p.words = p.words[1:]
	}
	return word
}

func (p *parser) fail(word string) {
	if p.err == nil {
		p.err = fmt.Errorf("unexpected token '%s'", word)
	}
}

func (p *parser) want(word string) {
	if got := p.next(); got != word {
		p.fail(got)
	}
}

func (p *parser) list(separator string, item func()) {
	for item(); p.err == nil && p.peek() == separator; item() {
		p.next()
	}
}

var nameOf = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (p *parser) name() string {
	word := p.next()
	if !nameOf.MatchString(word) {
		p.fail(word)
	}
	return word
}

func (p *parser) text() string {
	word := p.next()
	if len(word) < 2 || word[0] != '\'' {
		p.fail(word)
		return ""
	}
	return word[1 : len(word)-1]
}

// expression: a path, and whether it is made text.
func (p *parser) expression() (path []string, text bool) {
	first := p.name()
	if text = first == "tostring" && p.peek() == "("; text {
		p.want("(")
		path, _ = p.expression()
		p.want(")")
		return path, true
	}
	path = []string{first}
	for {
		switch p.peek() {
		case ".":
			p.next()
			path = append(path, p.name())
		case "[":
			p.next()
			path = append(path, p.text())
			p.want("]")
		default:
			return path, false
		}
	}
}

func (p *parser) condition() condition {
	c := condition{}
	c.path, _ = p.expression()
	switch c.operator = p.next(); c.operator {
	case "==", "=~":
		c.values = []string{p.text()}
	case "in~":
		p.want("(")
		p.list(",", func() { c.values = append(c.values, p.text()) })
		p.want(")")
	default:
		p.fail(c.operator)
	}
	return c
}

func (p *parser) column() column {
	path, text := p.expression()
	c := column{name: path[len(path)-1], path: path, text: text}
	if p.peek() == "=" {
		p.next()
		c.name = path[0]
		c.path, c.text = p.expression()
	}
	return c
}
