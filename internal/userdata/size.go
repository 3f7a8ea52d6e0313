package userdata

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/gzipb64"
)

// A Form is the form in which a cloud accepts user data.
type Form struct {
	// Encoding of the user data in its Secret.
	Encoding clusterv1alpha1.UserDataEncoding
	// MaxBytes of the user data, compressed if the encoding compresses, before base64. 0 is no limit.
	MaxBytes int
}

// A TooLargeError means that a cloud does not accept user data of this size.
type TooLargeError struct {
	Bytes, MaxBytes int
	Compressed      bool
	// Largest files, the largest first; may be empty.
	Largest []FileSize
}

// A FileSize is a file and its size before any encoding.
type FileSize struct {
	Path  string
	Bytes int
}

func (e *TooLargeError) Error() string {
	b := strings.Builder{}
	compressed := ""
	if e.Compressed {
		compressed = ", compressed"
	}
	fmt.Fprintf(&b, "the user data has %d bytes%s; the cloud takes at most %d", e.Bytes, compressed, e.MaxBytes)
	for i, f := range e.Largest {
		separator := ", "
		if i == 0 {
			separator = "; the largest files: "
		}
		fmt.Fprintf(&b, "%s%s (%d bytes)", separator, f.Path, f.Bytes)
	}
	return b.String()
}

// ReasonOf returns the reason of the problem for an error of user data.
func ReasonOf(err error) string {
	if tooLarge := (*TooLargeError)(nil); errors.As(err, &tooLarge) {
		return machinev1alpha1.ReasonUserDataTooLarge
	}
	return machinev1alpha1.ReasonUserDataInvalid
}

// encode encodes filled user data for its Secret, and returns its size in bytes as MaxBytes counts them.
func (f Form) encode(filled []byte) (encoded []byte, size int, err error) {
	switch f.Encoding {
	case clusterv1alpha1.UserDataBase64:
		return base64.StdEncoding.AppendEncode(nil, filled), len(filled), nil
	case clusterv1alpha1.UserDataGzipBase64:
		text, err := gzipb64.Encode(filled)
		if err != nil {
			return nil, 0, err
		}
		return []byte(text), base64.StdEncoding.DecodedLen(len(text)) - strings.Count(text[max(0, len(text)-2):], "="), nil
	}
	return filled, len(filled), nil
}

// pack encodes filled user data for its Secret, or returns a TooLargeError if the cloud does not accept user
// data of that size.
func (f Form) pack(filled []byte) ([]byte, error) {
	encoded, size, err := f.encode(filled)
	if err != nil {
		return nil, err
	}
	if e := f.tooLarge(size); e != nil {
		return nil, e
	}
	return encoded, nil
}

// tooLarge returns the error for user data of a size, nil if the cloud accepts it.
func (f Form) tooLarge(size int) *TooLargeError {
	if f.MaxBytes <= 0 || size <= f.MaxBytes {
		return nil
	}
	return &TooLargeError{Bytes: size, MaxBytes: f.MaxBytes, Compressed: f.Encoding == clusterv1alpha1.UserDataGzipBase64}
}

// SizeOf returns the size of a template that is filled with values of the usual size, in bytes as MaxBytes
// counts them.
func (f Form) SizeOf(template string) (int, error) {
	_, size, err := f.encode(typical.fill(template))
	return size, err
}

// typical values: a CA bundle has one certificate. A larger bundle is detected when the Machine's user data is
// filled, which also precedes the creation of its VM.
var typical = Filling{
	Token: "0123ab.0123456789abcdef", Server: "https://0123456789abcdef0123456789abcdef.example.org:6443",
	Name: "0123456789-0123456789-01234", CA: noise(1200), UID: "01234567-89ab-cdef-0123-456789abcdef", ConfigUID: "fedcba98-7654-3210-fedc-ba9876543210",
}

// noise is bytes that cannot be compressed, always the same.
func noise(n int) []byte {
	var out []byte
	for block := sha256.Sum256(nil); len(out) < n; block = sha256.Sum256(block[:]) {
		out = append(out, block[:]...)
	}
	return out[:n]
}

// mostNamed is how many files the error names.
const mostNamed = 3

// CheckSize returns a TooLargeError if the cloud does not accept the document, as encoded in the template.
func (d Document) CheckSize(template string, form Form) error {
	size, err := form.SizeOf(template)
	if err != nil {
		return err
	}
	if e := form.tooLarge(size); e != nil {
		e.Largest = d.largest()
		return e
	}
	return nil
}

func (d Document) largest() []FileSize {
	d, err := d.assembled()
	if err != nil {
		return nil
	}
	var all []FileSize
	for _, f := range d.Files {
		all = append(all, FileSize{f.Path, len(f.Content)})
	}
	for _, u := range d.Units {
		for _, f := range u.files() {
			all = append(all, FileSize{f.Path, len(f.Content)})
		}
	}
	slices.SortStableFunc(all, func(a, b FileSize) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all[:min(mostNamed, len(all))]
}
