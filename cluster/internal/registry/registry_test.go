package registry

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func serve(t *testing.T, dir string) (host string, stop func()) {
	t.Helper()
	h, err := Handler(dir, log.New(io.Discard, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	return strings.TrimPrefix(s.URL, "http://"), s.Close
}

func reference(t *testing.T, s string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(s)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func push(t *testing.T, ref string) v1.Hash {
	t.Helper()
	image, err := random.Image(1024, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference(t, ref), image); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestImagesSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	host, stop := serve(t, dir)
	first := push(t, host+"/org/name:v1")
	second := push(t, host+"/org/name:v1")
	stop()

	host, stop = serve(t, dir)
	defer stop()
	image, err := remote.Image(reference(t, host+"/org/name:v1"))
	if err != nil {
		t.Fatal(err)
	}
	if digest, _ := image.Digest(); digest != second {
		t.Errorf("tag: got %s, want the one pushed last, %s", digest, second)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		r, err := l.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Errorf("layer: %v", err)
		}
		r.Close()
	}
	if _, err := remote.Image(reference(t, host+"/org/name@"+first.String())); err != nil {
		t.Errorf("what the tag named before is gone: %v", err)
	}
	if tags, err := remote.List(reference(t, host+"/org/name").Context()); err != nil || len(tags) != 1 || tags[0] != "v1" {
		t.Errorf("tags: got %v, %v", tags, err)
	}
}
