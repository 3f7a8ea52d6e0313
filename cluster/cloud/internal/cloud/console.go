package cloud

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-dev/drover/internal/localcloud"
)

const (
	// maxConsole is the number of bytes at the end of a console log that are shown.
	maxConsole = 64 << 10
	// maxConsoleFile is the size at which a log is cut to its last maxConsole bytes.
	maxConsoleFile = 1 << 20
)

// consoles are text files, one per VM.
type consoles struct{ dir string }

func (c consoles) write(id string, now time.Time, format string, args ...any) error {
	f, err := os.OpenFile(c.file(id), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open console: %w", err)
	}
	_, err = fmt.Fprintf(f, "%s %s\n", now.UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
	info, serr := f.Stat()
	if err = errors.Join(err, serr, f.Close()); err != nil || info.Size() < maxConsoleFile {
		return err
	}
	return c.cut(id)
}

// cut shortens a log that is too long: a guest may write without end.
func (c consoles) cut(id string) error {
	tail, err := c.read(id)
	if err != nil {
		return err
	}
	return os.WriteFile(c.file(id), []byte(tail), 0o600)
}

func (c consoles) read(id string) (string, error) {
	f, err := os.Open(c.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("open console: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read console: %w", err)
	}
	b, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-maxConsole), maxConsole))
	return string(b), err
}

func (c consoles) remove(id string) error {
	if err := os.Remove(c.file(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove console: %w", err)
	}
	return nil
}

func (c consoles) file(id string) string { return filepath.Join(c.dir, id+".log") }

// The API shows a VM's console from quietTime to loudTime after its boot. Before quietTime, a
// healthy VM may still join. After loudTime, a user has stopped to wait for it.
const (
	quietTime = 30 * time.Second
	loudTime  = 30 * time.Minute
)

// mayExplain reports whether the console may explain why a VM does not join.
func mayExplain(r *Record, now time.Time) bool {
	switch r.VM.State {
	case localcloud.StateFailed:
		return true
	case localcloud.StateRunning:
		age := now.Sub(r.BootAt)
		return r.Booted && !r.Kubelet.Registered && age >= quietTime && age < loudTime
	}
	return false
}
