package layout

import (
	"strings"
	"testing"
)

func TestNewRefusesADirectoryThatIsTooLongForSockets(t *testing.T) {
	_, err := New("/" + strings.Repeat("d", 120))
	if err == nil || !strings.Contains(err.Error(), "--dir") || !strings.Contains(err.Error(), "too long") {
		t.Fatalf("got %v, want an error that names --dir and says that it is too long", err)
	}
}

func TestNewMakesTheDirectoryAbsolute(t *testing.T) {
	d, err := New("x")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(d.Kubeconfig(), "/") {
		t.Errorf("%s is not absolute", d.Kubeconfig())
	}
}
