package xpkg

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestAnImageRunsItsProgramAsNobody(t *testing.T) {
	s := httptest.NewServer(registry.New())
	defer s.Close()
	reference := strings.TrimPrefix(s.URL, "http://") + "/drover/tool:v1"
	// Any static Go program will do.
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := PushImage(t.Context(), program, reference)
	if err != nil || !strings.HasPrefix(pushed, reference+"@sha256:") {
		t.Fatalf("pushed %s, %v", pushed, err)
	}
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; c.User != nonRoot || len(c.Entrypoint) != 1 || !strings.HasPrefix(c.Entrypoint[0], binFolder+"/") {
		t.Errorf("config %+v", c)
	}
	if _, err := PushImage(t.Context(), program, strings.TrimSuffix(reference, ":v1")); err == nil {
		t.Error("a reference without a tag is accepted")
	}
}
