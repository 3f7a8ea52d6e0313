package process

import (
	"strings"
	"testing"
)

func TestGroup(t *testing.T) {
	g := &Group{}
	first := New(Spec{Name: "a"}, nil)
	g.Add(first)
	g.Add(New(Spec{Name: "b"}, nil))
	second := New(Spec{Name: "a"}, nil)
	g.Add(second)

	if p, err := g.Get("a"); err != nil || p != second {
		t.Errorf("a process does not take the place of its predecessor: %v", err)
	}
	if all := g.Status(); len(all) != 2 || all[0].Name != "a" || all[1].Name != "b" {
		t.Errorf("got %v, want a and b", all)
	}
	_, err := g.Get("c")
	if err == nil || !strings.Contains(err.Error(), `"c"`) || !strings.Contains(err.Error(), "a, b") {
		t.Errorf("got %v, want an error with the name and the names that there are", err)
	}
	g.Remove("a")
	if _, err := g.Get("a"); err == nil {
		t.Error("a is still there")
	}
}
