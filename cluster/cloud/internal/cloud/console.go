package cloud

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// maxConsole is how much of the end of a console log is shown.
const maxConsole = 64 << 10

// consoles are text files, one a VM.
type consoles struct{ dir string }

func (c consoles) write(id string, now time.Time, format string, args ...any) error {
	f, err := os.OpenFile(c.file(id), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open console: %w", err)
	}
	_, err = fmt.Fprintf(f, "%s %s\n", now.UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
	return errors.Join(err, f.Close())
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
