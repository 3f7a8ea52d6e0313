package gitops

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drover-dev/drover/test/kit"
)

// up starts the control plane when the first test needs it.
var up = sync.OnceValues(func() (*kit.Plane, error) {
	isUp.Store(true)
	return kit.Up(context.Background(), kit.Options{Args: kit.Limits})
})

var isUp atomic.Bool

// plane is shared by all tests: each test has its own namespace.
func plane(t *testing.T) *kit.Plane {
	t.Helper()
	p, err := up()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	code := m.Run()
	if isUp.Load() {
		p, _ := up()
		defer p.Down()
		if code != 0 && p != nil {
			p.KeepLogs()
		}
	}
	return code
}

// binary that the Makefile built.
func binary(name string) string { return filepath.Join(os.Getenv("DROVER_BIN"), name) }
