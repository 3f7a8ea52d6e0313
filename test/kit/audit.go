package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/localplane"
)

// A Write is a line of an audit log: a request that changed an object, or was refused.
type Write struct {
	Verb string
	User struct{ Username string }
	// ObjectRef is empty for a request that names no object.
	ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
	// RequestObject is the body; an audit log of level Metadata has none.
	RequestObject            json.RawMessage
	RequestReceivedTimestamp time.Time

	// Target means that the request was sent to the target cluster.
	Target bool `json:"-"`
}

// Path is the changed resource, with the subresource if there is one.
func (w Write) Path() string {
	if w.ObjectRef.Subresource == "" {
		return w.ObjectRef.Resource
	}
	return w.ObjectRef.Resource + "/" + w.ObjectRef.Subresource
}

// IsAccepted reports whether the API server carried out the request.
func (w Write) IsAccepted() bool { return w.ResponseStatus.Code >= 200 && w.ResponseStatus.Code < 300 }

// IsInterrupted reports whether the client disconnected before the API server answered. The
// request may still have been carried out.
func (w Write) IsInterrupted() bool {
	return w.ResponseStatus.Code == 0 || w.ResponseStatus.Code >= http.StatusInternalServerError
}

// IsByDrover reports whether provider-drover sent the request.
func (w Write) IsByDrover() bool {
	if w.Target {
		return w.User.Username == "system:serviceaccount:"+shippedAccount.Namespace+":"+shippedAccount.Name
	}
	return w.IsByPackage("provider-drover")
}

// IsByPackage reports whether the account of a package in the control cluster sent the request.
// The account has the name of the package or of a package revision.
func (w Write) IsByPackage(name string) bool {
	account, ok := strings.CutPrefix(w.User.Username, "system:serviceaccount:crossplane-system:")
	return ok && strings.Contains(account, name)
}

// ReadWrites of an audit log. An incomplete last line is ignored.
func ReadWrites(log io.Reader, f func(Write)) error {
	d := json.NewDecoder(log)
	for {
		w := Write{}
		if err := d.Decode(&w); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		} else if err != nil {
			return err
		}
		f(w)
	}
}

// SkipWrites skips the complete lines of an audit log. The API server may still be writing the
// last line.
func SkipWrites(log io.ReadSeeker) error {
	b, err := io.ReadAll(log)
	if err != nil {
		return err
	}
	_, err = log.Seek(int64(bytes.LastIndexByte(b, '\n')+1), io.SeekStart)
	return err
}

// A Journal has all writes to the clusters of a Plane since the Journal was started.
type Journal struct {
	stop context.CancelFunc
	all  sync.WaitGroup

	mu     sync.Mutex
	writes []Write
	err    error
	heard  chan struct{}
}

// Journal starts to read the audit logs, until Close. The Plane needs Options.Audit.
func (p *Plane) Journal(ctx context.Context) (*Journal, error) {
	s, err := p.Status(ctx)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	j := &Journal{stop: stop, heard: make(chan struct{})}
	follow := func(c localplane.Cluster, target bool) error {
		log, err := os.Open(c.AuditLog)
		if err != nil {
			return err
		}
		if err := SkipWrites(log); err != nil {
			_ = log.Close()
			return err
		}
		j.all.Go(func() { j.follow(ctx, log, target) })
		return nil
	}
	err = follow(s.Control, false)
	if err == nil && s.Target != nil {
		err = follow(*s.Target, true)
	}
	if err != nil {
		j.Close()
	}
	return j, err
}

// Close ends the reading.
func (j *Journal) Close() {
	j.stop()
	j.all.Wait()
}

// Since returns the writes from the n-th on, and a channel that is closed when there are more
// writes.
func (j *Journal) Since(n int) ([]Write, <-chan struct{}, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.writes[n:len(j.writes):len(j.writes)], j.heard, j.err
}

// follow a log as it grows.
func (j *Journal) follow(ctx context.Context, log io.ReadCloser, target bool) {
	defer func() { _ = log.Close() }()
	// The interval is short, so that a test can kill a process before its next write.
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var line []byte
	chunk := make([]byte, 1<<16)
	for {
		n, err := log.Read(chunk)
		line = append(line, chunk[:n]...)
		if end := bytes.LastIndexByte(line, '\n'); end >= 0 {
			j.add(line[:end+1], target)
			line = append([]byte(nil), line[end+1:]...)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			j.fail(err)
			return
		}
		if n > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (j *Journal) add(lines []byte, target bool) {
	var writes []Write
	err := ReadWrites(bytes.NewReader(lines), func(w Write) {
		w.Target = target
		if w.ObjectRef.Resource != "events" {
			writes = append(writes, w)
		}
	})
	j.mu.Lock()
	j.writes = append(j.writes, writes...)
	close(j.heard)
	j.heard = make(chan struct{})
	j.mu.Unlock()
	j.fail(err)
}

func (j *Journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err = errors.Join(j.err, err)
}
