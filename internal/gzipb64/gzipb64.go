// Package gzipb64 packs bytes into text: what cloud-init calls gzip+base64.
package gzipb64

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"strings"
)

// maxPlain bounds what a few bytes may expand to.
const maxPlain = 16 << 20

// Encode without a time, so that the same bytes give the same text.
func Encode(plain []byte) (string, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(plain); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// Decode what Encode made. Of more than 16 MiB it returns the first, and no error.
func Decode(text string) ([]byte, error) {
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, maxPlain))
}
