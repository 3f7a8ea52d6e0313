package gzipb64

import (
	"bytes"
	"testing"
)

func TestWhatIsEncodedIsDecoded(t *testing.T) {
	for _, plain := range [][]byte{nil, []byte("#cloud-config\n"), bytes.Repeat([]byte("a"), 1<<20)} {
		text, err := Encode(plain)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(text)
		if err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%d bytes became %d, error %v", len(plain), len(got), err)
		}
		if again, err := Encode(plain); err != nil || again != text {
			t.Errorf("encoded again it is another text, error %v", err)
		}
	}
}

func TestWhatIsNotEncodedIsAnError(t *testing.T) {
	for _, text := range []string{"", "%", "YWJj"} {
		if got, err := Decode(text); err == nil {
			t.Errorf("%q became %q", text, got)
		}
	}
}
