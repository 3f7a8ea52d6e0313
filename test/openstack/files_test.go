//go:build linux

package main

import (
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNothingIsReachedBeyondTheLoopback finds an address or a URL of a service that is not on the loopback.
func TestNothingIsReachedBeyondTheLoopback(t *testing.T) {
	address := regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+\b`)
	host := regexp.MustCompile(`://([^/\s]+)`)
	check := func(where, text string) {
		for _, a := range address.FindAllString(text, -1) {
			if ip, err := netip.ParseAddr(a); err != nil || !ip.IsLoopback() {
				t.Errorf("%s names %s", where, a)
			}
		}
		for _, h := range host.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(h[1], "127.0.0.1") {
				t.Errorf("%s names %s", where, h[1])
			}
		}
	}
	must(t, fs.WalkDir(files, "files", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := files.ReadFile(name)
		check(name, string(b))
		return err
	}))
	for _, s := range all() {
		check(s.name, strings.Join(s.args, " "))
	}
}

// all returns the services in the order in which they start.
func all() []service { return slices.Concat(stores, []service{keystone}, services) }

func TestEachServiceOfTheCatalogListens(t *testing.T) {
	ports := map[int]string{}
	for _, s := range all() {
		if other, taken := ports[s.port]; taken && s.port != 0 {
			t.Errorf("%s and %s have port %d", s.name, other, s.port)
		}
		ports[s.port] = s.name
	}
	for _, c := range catalog {
		if ports[c.port] == "" {
			t.Errorf("no service listens on port %d of %s", c.port, c.name)
		}
	}
}

// TestTheConfigurationIsWhereTheServicesReadIt finds a file that no command names and that no service reads by itself.
func TestTheConfigurationIsWhereTheServicesReadIt(t *testing.T) {
	root := t.TempDir()
	must(t, addFiles(root))
	commands := ""
	for _, s := range all() {
		commands += strings.Join(s.args, " ") + "\n"
	}
	for _, steps := range schemas {
		for _, s := range steps {
			commands += strings.Join(s.args, " ") + "\n"
		}
	}
	// By their names, or because all files of the folder are read.
	byItself := []string{"/etc/keystone/keystone.conf", "/etc/placement/placement.conf", "/etc/mysql/mariadb.conf.d/99-openstack.cnf"}
	found := 0
	must(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		found++
		if name := strings.TrimPrefix(path, root); !strings.Contains(commands, name) && !slices.Contains(byItself, name) {
			t.Errorf("nothing reads %s", name)
		}
		return nil
	}))
	for _, name := range regexp.MustCompile(`/(etc|srv)/\S+`).FindAllString(commands, -1) {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("a command reads %s: %v", name, err)
		}
	}
	if names, err := packages(); err != nil || !slices.IsSorted(names) || found == 0 {
		t.Errorf("packages %q, %d files, %v", names, found, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
