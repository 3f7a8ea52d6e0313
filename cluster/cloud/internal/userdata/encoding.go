package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// maxExpanded limits the size after gzip, so that a few bytes of user data cannot exhaust the
// memory.
const maxExpanded = 16 << 20

// decode decodes content in an encoding of write_files, by any of the names that cloud-init
// accepts.
func decode(content, encoding string) (string, error) {
	b := []byte(content)
	var err error
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "text/plain":
		return content, nil
	case "b64", "base64":
		b, err = unbase64(content)
	case "gz", "gzip":
		b, err = gunzip(b)
	case "gz+b64", "gz+base64", "gzip+b64", "gzip+base64":
		if b, err = unbase64(content); err == nil {
			b, err = gunzip(b)
		}
	default:
		return "", fmt.Errorf("encoding: invalid value %q: must be one of b64, gzip, gzip+b64 and text/plain", encoding)
	}
	if err != nil {
		return "", fmt.Errorf("content: %w", err)
	}
	return string(b), nil
}

func unbase64(s string) ([]byte, error) {
	// A YAML block scalar contains line breaks.
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("is not base64: %w", err)
	}
	return b, nil
}

func gunzipIfGzip(b []byte) ([]byte, error) {
	if !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	return gunzip(b)
}

func gunzip(b []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("is not gzip: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(r, maxExpanded+1))
	if err != nil {
		return nil, fmt.Errorf("is not gzip: %w", err)
	}
	if len(out) > maxExpanded {
		return nil, errors.New("gzip: expands to more than 16 MiB")
	}
	return out, nil
}
