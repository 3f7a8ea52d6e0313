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
	for _, d := range Definitions {
		p, err := d.Packages()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(p) || len(slices.Compact(slices.Clone(p))) != len(p) {
			t.Errorf("%s: sort the packages: %q", d.Name, p)
		}
		r, err := d.Repository()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(r) || len(slices.Compact(slices.Clone(r))) != len(r) {
			t.Errorf("%s: sort the packages of the repository: %q", d.Name, r)
		}
		for _, needed := range []string{"linux-image-cloud-amd64", "runc", "user-mode-linux"} {
			if !slices.ContainsFunc(slices.Concat(p, r), func(have string) bool { name, _, _ := strings.Cut(have, "/"); return name == needed }) {
				t.Errorf("%s: %s is missing", d.Name, needed)
			}
		}
	}
}

func TestHashIsOfTheListAndTheFiles(t *testing.T) {
	hashes := map[string]string{}
	for _, d := range Definitions {
		hash, err := d.Hash()
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := d.Hash(); again != hash {
			t.Errorf("%s: got %s, then %s", d.Name, hash, again)
		}
		if other, ok := hashes[hash]; ok {
			t.Errorf("%s and %s have the same hash", d.Name, other)
		}
		hashes[hash] = d.Name
		d.Suite = "sid"
		if other, _ := d.Hash(); other == hash {
			t.Errorf("%s of another suite has the same hash", d.Name)
		}
	}
}

func TestDefinitionsOf(t *testing.T) {
	if got, err := DefinitionsOf(nil); err != nil || len(got) != len(Definitions) {
		t.Errorf("of no names: %v, %v", got, err)
	}
	if got, err := DefinitionsOf([]string{"flatcar-like"}); err != nil || len(got) != 1 || got[0].Name != "flatcar-like" {
		t.Errorf("of a name: %v, %v", got, err)
	}
	const want = `invalid value "dos": must be one of debian-12-real, debian-13-real, flatcar-like`
	if _, err := DefinitionsOf([]string{"dos"}); err == nil || err.Error() != want {
		t.Errorf("of an unknown name: %v, want %s", err, want)
	}
}

func TestOtherSuitesAreThoseOfTheList(t *testing.T) {
	d := Definition{Suite: "bookworm"}
	if got := d.otherSuites([]string{"a", "b/forky", "c/bookworm", "d/forky"}); !slices.Equal(got, []string{"forky"}) {
		t.Errorf("got %q", got)
	}
}

func TestOnlyAnImageWithARepositoryLosesItsSources(t *testing.T) {
	for _, d := range Definitions {
		r, err := d.Repository()
		if err != nil {
			t.Fatal(err)
		}
		loses := strings.Contains(strings.Join(d.steps("ROOT", "OUT", r), "\n"), "ROOT/etc/apt/sources.list")
		if want := d.Name == "debian-13-real"; loses != want || (len(r) > 0) != want {
			t.Errorf("%s: the repository %q takes the place of the sources: %t, want %t", d.Name, r, loses, want)
		}
	}
}

func TestBuildKeepsAnImageThatIsUpToDate(t *testing.T) {
	dir := t.TempDir()
	d := Definitions[0]
	hash, err := d.Hash()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, d.Name), 0o755); err != nil {
		t.Fatal(err)
	}
	if names, err := List(dir); err != nil || len(names) > 0 {
		t.Errorf("an incomplete image is listed: %q, %v", names, err)
	}
	if err := os.WriteFile(filepath.Join(dir, d.Name, hashFile), []byte(hash+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if err := d.Build(t.Context(), dir, &log); err != nil || !strings.Contains(log.String(), "is up to date") {
		t.Errorf("got %v and %q", err, &log)
	}
	if names, err := List(dir); err != nil || !slices.Equal(names, []string{d.Name}) {
		t.Errorf("got %q, %v", names, err)
	}
}

func TestListOfAFolderThatIsNotThere(t *testing.T) {
	if names, err := List(filepath.Join(t.TempDir(), "no")); err != nil || len(names) > 0 {
		t.Errorf("got %q, %v", names, err)
	}
}

func TestOverlay(t *testing.T) {
	for name, files := range map[string]map[string]fs.FileMode{
		"debian-12-real": {
			"etc/containerd/config.toml":         0o644,
			"usr/local/sbin/boot-probe":          0o755,
			"usr/local/sbin/finish-image":        0o755,
			"usr/local/sbin/finish-own-image":    0o755,
			"etc/systemd/system/cpuinfo.service": 0o644,
		},
		"debian-13-real": {
			"usr/local/sbin/finish-own-image": 0o755,
		},
		"flatcar-like": {
			"etc/initramfs-tools/hooks/ignition":               0o755,
			"etc/initramfs-tools/scripts/init-bottom/ignition": 0o755,
			"usr/lib/systemd/system/containerd.service":        0o644,
			"usr/local/sbin/finish-own-image":                  0o755,
		},
	} {
		dir := t.TempDir()
		if err := (Definition{Name: name}).writeOverlay(dir); err != nil {
			t.Fatal(err)
		}
		for file, mode := range files {
			info, err := os.Stat(filepath.Join(dir, file))
			if err != nil {
				t.Error(err)
			} else if info.Mode().Perm() != mode {
				t.Errorf("%s, %s: mode %o, want %o", name, file, info.Mode().Perm(), mode)
			}
		}
	}
}
