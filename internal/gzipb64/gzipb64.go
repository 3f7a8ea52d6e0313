// Package gzipb64 packs bytes into text, in the encoding that cloud-init calls gzip+base64.
package gzipb64

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"strings"
)

// maxPlain bounds the size after decompression, which a small input could make arbitrarily large.
const maxPlain = 16 << 20

// Encode compresses without a time, so that the same bytes give the same text.
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

// Decode decodes the output of Encode. If it is longer than 16 MiB, the rest is cut off without an error.
func Decode(text string) ([]byte, error) {
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, maxPlain))
}
