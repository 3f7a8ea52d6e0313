package image

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPackagesAreSortedAndUnique(t *testing.T) {
	p := Packages()
	if !slices.IsSorted(p) || len(slices.Compact(slices.Clone(p))) != len(p) {
		t.Errorf("sort the packages: %q", p)
	}
	for _, needed := range []string{"cloud-init", "containerd", "linux-image-cloud-amd64", "user-mode-linux"} {
		if !slices.Contains(p, needed) {
			t.Errorf("%s is missing", needed)
		}
	}
}

func TestHashIsOfTheListAndTheFiles(t *testing.T) {
	before, err := Hash()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := Hash(); again != before {
		t.Errorf("got %s, then %s", before, again)
	}
	was := packageList
	defer func() { packageList = was }()
	packageList += "vim\n"
	if after, _ := Hash(); after == before {
		t.Error("another list has the same hash")
	}
}

func TestBuildKeepsAnImageThatIsUpToDate(t *testing.T) {
	dir := t.TempDir()
	hash, err := Hash()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, Debian12), 0o755); err != nil {
		t.Fatal(err)
	}
	if names, err := List(dir); err != nil || len(names) > 0 {
		t.Errorf("an incomplete image is listed: %q, %v", names, err)
	}
	if err := os.WriteFile(filepath.Join(dir, Debian12, hashFile), []byte(hash+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if err := Build(t.Context(), dir, &log); err != nil || !strings.Contains(log.String(), "is up to date") {
		t.Errorf("got %v and %q", err, &log)
	}
	if names, err := List(dir); err != nil || !slices.Equal(names, []string{Debian12}) {
		t.Errorf("got %q, %v", names, err)
	}
}

func TestListOfAFolderThatIsNotThere(t *testing.T) {
	if names, err := List(filepath.Join(t.TempDir(), "no")); err != nil || len(names) > 0 {
		t.Errorf("got %q, %v", names, err)
	}
}

func TestOverlay(t *testing.T) {
	dir := t.TempDir()
	if err := writeOverlay(dir); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{
		"etc/containerd/config.toml":         0o644,
		"usr/local/sbin/boot-probe":          0o755,
		"usr/local/sbin/finish-image":        0o755,
		"etc/systemd/system/cpuinfo.service": 0o644,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != mode {
			t.Errorf("%s: mode %o, want %o", name, info.Mode().Perm(), mode)
		}
	}
}
