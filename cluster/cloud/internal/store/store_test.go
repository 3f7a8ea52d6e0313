package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type doc struct{ A int }

func TestDocumentsOutliveTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "dir")
	d := open(t, path)
	for name, v := range map[string]doc{"one": {1}, "two": {2}, "gone": {3}} {
		must(t, d.Put(name, v))
	}
	must(t, d.Put("one", doc{11}))
	must(t, d.Delete("gone"))
	must(t, d.Delete("gone"))

	d = open(t, path)
	names, err := d.Names()
	must(t, err)
	if diff := cmp.Diff([]string{"one", "two"}, names); diff != "" {
		t.Error(diff)
	}
	var got doc
	if found, err := d.Get("one", &got); err != nil || !found || got.A != 11 {
		t.Errorf("Get(one) = %v, %v, %v", got, found, err)
	}
	if found, err := d.Get("gone", &got); err != nil || found {
		t.Errorf("Get(gone) = %v, %v", found, err)
	}
}

func TestAHalfWrittenDocumentIsClearedAway(t *testing.T) {
	path := t.TempDir()
	must(t, open(t, path).Put("one", doc{1}))
	half := filepath.Join(path, ".one.tmp")
	must(t, os.WriteFile(half, []byte(`{"A":`), 0o600))

	d := open(t, path)
	var got doc
	if found, err := d.Get("one", &got); err != nil || !found || got.A != 1 {
		t.Errorf("Get(one) = %v, %v, %v", got, found, err)
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("%s is still there", half)
	}
}

func TestADamagedDocumentIsAnErrorThatNamesTheFile(t *testing.T) {
	path := t.TempDir()
	must(t, os.WriteFile(filepath.Join(path, "one.json"), []byte("{"), 0o600))
	_, err := open(t, path).Get("one", &doc{})
	if want := "decode " + path + "/one.json: unexpected end of JSON input"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestDocumentsAreForTheOwnerOnly(t *testing.T) {
	path := t.TempDir()
	must(t, open(t, path).Put("one", doc{1}))
	info, err := os.Stat(filepath.Join(path, "one.json"))
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600: user data holds tokens", info.Mode())
	}
}

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	must(t, err)
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
