package proxmox

import (
	"bytes"
	"errors"
	"io/fs"
	"os"

	"github.com/diskfs/go-diskfs/backend"
)

// inMemory is an image without a file.
type inMemory struct{ *bytes.Reader }

var errNoFile = errors.New("the image is in memory")

func (inMemory) Close() error                            { return nil }
func (inMemory) Stat() (fs.FileInfo, error)              { return nil, errNoFile }
func (inMemory) Sys() (*os.File, error)                  { return nil, errNoFile }
func (inMemory) Writable() (backend.WritableFile, error) { return nil, errNoFile }
func (inMemory) Path() string                            { return "" }
