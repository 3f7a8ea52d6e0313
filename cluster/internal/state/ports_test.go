package state

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

func counter(from int) func() int {
	return func() int { from++; return from - 1 }
}

func except(ports ...int) func(int) bool {
	return func(p int) bool {
		for _, q := range ports {
			if p == q {
				return false
			}
		}
		return true
	}
}

func TestChoose(t *testing.T) {
	wants := []Want{{Name: "api", Fixed: true}, {Name: "metrics"}}
	for _, tc := range []struct {
		name       string
		remembered map[string]int
		free       func(int) bool
		want       map[string]int
		err        string
	}{
		{"FirstStartTakesWhatIsProposed", nil, except(), map[string]int{"api": 100, "metrics": 101}, ""},
		{"APortInUseIsSkipped", nil, except(100), map[string]int{"api": 101, "metrics": 102}, ""},
		{"ARestartKeepsItsPorts", map[string]int{"api": 7, "metrics": 8}, except(), map[string]int{"api": 7, "metrics": 8}, ""},
		{"AMovablePortMovesWhenItIsTaken", map[string]int{"api": 7, "metrics": 8}, except(8), map[string]int{"api": 7, "metrics": 100}, ""},
		{"AFixedPortThatIsTakenIsAnError", map[string]int{"api": 7}, except(7), nil, "port 7, which api had before, is in use"},
		{"APortOfAnotherNameIsNotReused", map[string]int{"target": 100}, except(), map[string]int{"target": 100, "api": 101, "metrics": 102}, ""},
		{"NoFreePortAtAllIsAnError", nil, func(int) bool { return false }, nil, "no free port"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Choose(tc.remembered, wants, tc.free, counter(100))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got error %v, want one with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(tc.want) {
				t.Fatalf("got %v, want %v", got, tc.want)
			}
			for name, port := range tc.want {
				if got[name] != port {
					t.Errorf("%s: got %d, want %d", name, got[name], port)
				}
			}
		})
	}
}

func TestFreeSeesAListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if Free(port) {
		t.Errorf("port %d is listened on, but said to be free", port)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !Free(port) {
		t.Errorf("port %d is closed, but said to be in use", port)
	}
}

func TestStateSurvivesSaveAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if s, err := Load(path); err != nil || len(s.Ports) != 0 {
		t.Fatalf("a missing file: got %v, %v", s, err)
	}
	if err := (State{Ports: map[string]int{"api": 7}}).Save(path); err != nil {
		t.Fatal(err)
	}
	s, err := Load(path)
	if err != nil || s.Ports["api"] != 7 {
		t.Fatalf("got %v, %v", s, err)
	}
}
