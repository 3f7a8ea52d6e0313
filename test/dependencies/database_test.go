package dependencies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Environment variables that the Makefile sets.
const (
	envTool     = "GOVULNCHECK" // the program
	envDatabase = "VULNDB"      // the database: a URL, or file:// and a folder
)

// errUnreachable is the error of a database that cannot be read.
var errUnreachable = errors.New("the database cannot be read")

// A finding of govulncheck: a linked package that has a vulnerability.
type finding struct {
	OSV          string `json:"osv"`
	FixedVersion string `json:"fixed_version"`
	Trace        []struct {
		Module, Version, Package string
	} `json:"trace"`
}

// scan a module of the repository. It checks packages, not functions: functions would take
// minutes instead of seconds.
func scan(t *testing.T, database, module string) ([]finding, error) {
	t.Helper()
	args := append([]string{"-db", database, "-scan", "package", "-test", "-format", "json", "./..."}, modules[module]...)
	cmd := exec.CommandContext(t.Context(), os.Getenv(envTool), args...)
	stderr := &bytes.Buffer{}
	cmd.Dir, cmd.Stderr = filepath.Join(root, module), stderr
	out, err := cmd.Output()
	switch {
	case err != nil && strings.HasPrefix(database, "http") &&
		(strings.Contains(stderr.String(), "fetching vulnerabilities") || strings.Contains(stderr.String(), "creating client")):
		return nil, fmt.Errorf("%w: %s", errUnreachable, stderr)
	case err != nil:
		return nil, fmt.Errorf("%w: %s", err, stderr)
	}
	return findings(out)
}

// findings returns those in the output of govulncheck, without packages that are not linked.
func findings(output []byte) ([]finding, error) {
	var out []finding
	for d := json.NewDecoder(bytes.NewReader(output)); ; {
		message := struct{ Finding *finding }{}
		if err := d.Decode(&message); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		if f := message.Finding; f != nil && len(f.Trace) > 0 && f.Trace[0].Package != "" {
			out = append(out, *f)
		}
	}
}

// TestTheDatabaseHasNoOtherFault queries the database if it can be reached.
func TestTheDatabaseHasNoOtherFault(t *testing.T) {
	if os.Getenv(envTool) == "" || os.Getenv(envDatabase) == "" {
		t.Skipf("%s or %s is not set: make lint does so", envTool, envDatabase)
	}
	faults := readFaults(t)
	for module := range modules {
		t.Run(module, func(t *testing.T) {
			found, err := scan(t, os.Getenv(envDatabase), module)
			if errors.Is(err, errUnreachable) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				if !slices.ContainsFunc(faults, func(known fault) bool { return known.ID == f.OSV && known.Accepted[module] != "" }) {
					t.Errorf("%s has %s by package %s of %s %s, fixed in %q", module, f.OSV, f.Trace[0].Package, f.Trace[0].Module, f.Trace[0].Version, f.FixedVersion)
				}
			}
		})
	}
}

// TestAFaultInTheDatabaseIsFound scans with a database that has a vulnerability of a package that
// this test imports.
func TestAFaultInTheDatabaseIsFound(t *testing.T) {
	if os.Getenv(envTool) == "" {
		t.Skipf("%s is not set: make lint does so", envTool)
	}
	dir := t.TempDir()
	for file, text := range map[string]string{
		"index/db.json":      `{"modified": "2026-01-01T00:00:00Z"}`,
		"index/modules.json": `[{"path": "sigs.k8s.io/yaml", "vulns": [{"id": "GO-2026-0000", "modified": "2026-01-01T00:00:00Z", "fixed": "9.9.9"}]}]`,
		"index/vulns.json":   `[{"id": "GO-2026-0000", "modified": "2026-01-01T00:00:00Z"}]`,
		"ID/GO-2026-0000.json": `{"schema_version": "1.3.1", "id": "GO-2026-0000", "modified": "2026-01-01T00:00:00Z", "affected": [{
			"package": {"name": "sigs.k8s.io/yaml", "ecosystem": "Go"}, "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "9.9.9"}]}],
			"ecosystem_specific": {"imports": [{"path": "sigs.k8s.io/yaml"}]}}]}`,
	} {
		file = filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := scan(t, "file://"+dir, ".")
	if err != nil || len(found) != 1 || found[0].OSV != "GO-2026-0000" || found[0].FixedVersion != "v9.9.9" {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := scan(t, "https://127.0.0.1:1", "."); !errors.Is(err, errUnreachable) {
		t.Errorf("error %v of a database that cannot be reached", err)
	}
	if _, err := scan(t, "file://"+filepath.Join(dir, "missing"), "."); err == nil || errors.Is(err, errUnreachable) {
		t.Errorf("error %v of a folder that does not exist: it must not be left out in silence", err)
	}
}
