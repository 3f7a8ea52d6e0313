package mirror

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
)

// executable is a file of an archive.
type executable struct {
	name    string
	content []byte
}

// archive returns a tar with executables, plain and compressed. It is deterministic.
func archive(files []executable) (plain, packed []byte, err error) {
	var p, z bytes.Buffer
	t := tar.NewWriter(&p)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.content)), Typeflag: tar.TypeReg}); err != nil {
			return nil, nil, err
		}
		if _, err := t.Write(f.content); err != nil {
			return nil, nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, nil, err
	}
	w := gzip.NewWriter(&z)
	_, err = w.Write(p.Bytes())
	err = errors.Join(err, w.Close())
	return p.Bytes(), z.Bytes(), err
}
