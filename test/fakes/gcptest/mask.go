package gcptest

import "regexp"

// mask selects fields of an answer by their names. An empty mask selects everything. The name * is
// all fields. See https://cloud.google.com/compute/docs/api/how-tos/performance#partial.
type mask map[string]mask

var maskWords = regexp.MustCompile(`[A-Za-z0-9_]+|[*/(),]|\S`)

// Partial returns the fields of an answer that the parameter fields selects. It returns false if that is none.
func Partial(fields string, answer any) (any, bool) {
	m, ok := parseMask(fields)
	return m.of(answer), ok
}

// parseMask like a,b/c,d(e,f/g), d/*/e.
func parseMask(text string) (mask, bool) {
	m := mask{}
	if text == "" {
		return m, true
	}
	rest, ok := m.parse(maskWords.FindAllString(text, -1))
	return m, ok && len(rest) == 0
}

// parse parses paths up to a closing bracket, and returns the words after it.
func (m mask) parse(words []string) (rest []string, ok bool) {
	for {
		at := m
		for {
			if len(words) == 0 || words[0] != "*" && !isName.MatchString(words[0]) {
				return nil, false
			}
			if at[words[0]] == nil {
				at[words[0]] = mask{}
			}
			at, words = at[words[0]], words[1:]
			if len(words) == 0 || words[0] != "/" {
				break
			}
			words = words[1:]
		}
		if len(words) > 0 && words[0] == "(" {
			if words, ok = at.parse(words[1:]); !ok || len(words) == 0 || words[0] != ")" {
				return nil, false
			}
			words = words[1:]
		}
		if len(words) == 0 || words[0] != "," {
			return words, true
		}
		words = words[1:]
	}
}

var isName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// of returns the fields of a value that the mask selects.
func (m mask) of(value any) any {
	if len(m) == 0 {
		return value
	}
	switch value := value.(type) {
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = m.of(value[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, v := range value {
			if sub, ok := m.wants(k); ok {
				out[k] = sub.of(v)
			}
		}
		return out
	}
	return value
}

func (m mask) wants(name string) (mask, bool) {
	if sub, ok := m[name]; ok {
		return sub, true
	}
	sub, ok := m["*"]
	return sub, ok
}
