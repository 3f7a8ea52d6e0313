package cloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/drover-dev/drover/internal/localcloud"
)

// history is a file with a line of JSON per change, in the order of the changes.
type history struct{ file string }

func (h history) add(now time.Time, kind localcloud.ChangeKind, r *Record) error {
	b, err := json.Marshal(localcloud.Change{At: now.UTC(), Kind: kind, VM: r.VM.ID, Name: r.VM.Name, Tags: r.VM.Tags})
	if err != nil {
		return fmt.Errorf("encode history: %w", err)
	}
	f, err := os.OpenFile(h.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open history: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}

func (h history) read() ([]localcloud.Change, error) {
	out := []localcloud.Change{}
	f, err := os.Open(h.file)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		c := localcloud.Change{}
		if err := d.Decode(&c); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		out = append(out, c)
	}
}

// changeOf returns the kind of a change of a record for the history, empty if the history omits it.
func changeOf(old, now *Record) localcloud.ChangeKind {
	switch {
	case old == nil:
		return localcloud.ChangeCreated
	case now.VM.State == localcloud.StateTerminating && old.VM.State != now.VM.State:
		return localcloud.ChangeTerminating
	}
	return ""
}
