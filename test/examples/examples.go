// Package examples reads the examples as a reader who has replaced their placeholders.
package examples

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/kubectl/installation"
)

// valuesFiles have what a reader could write for the placeholders of an example: values/FOLDER.yaml.
//
//go:embed values/*.yaml
var valuesFiles embed.FS

// values are the values of the placeholders, by the folder of the example.
var values = sync.OnceValue(func() map[string]map[string]string {
	files, err := valuesFiles.ReadDir("values")
	if err != nil {
		panic(err)
	}
	all := map[string]map[string]string{}
	for _, f := range files {
		b, err := valuesFiles.ReadFile("values/" + f.Name())
		if err != nil {
			panic(err)
		}
		of := map[string]string{}
		if err := yaml.UnmarshalStrict(b, &of); err != nil {
			panic(fmt.Sprintf("values/%s: %v", f.Name(), err))
		}
		all[strings.TrimSuffix(f.Name(), ".yaml")] = of
	}
	return all
})

// Read returns a file of an example with values for its placeholders. A file without placeholders is returned as it
// is.
func Read(file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Fill(file, b)
}

// Fill replaces the placeholders in the content of a file. It fails for one that has no value.
func Fill(file string, content []byte) ([]byte, error) {
	of := values()[filepath.Base(filepath.Dir(file))]
	unknown := ""
	out := installation.Placeholder.ReplaceAllStringFunc(string(content), func(p string) string {
		// Comments name the prefix of placeholders.
		v, ok := of[p]
		if !ok {
			unknown = p
		}
		return v
	})
	if unknown != "" {
		return nil, fmt.Errorf("%s: test/examples/values/%s.yaml has no value of %s", file, filepath.Base(filepath.Dir(file)), unknown)
	}
	return []byte(out), nil
}

// ReadSpot returns the file of a class as Read does, for a VM that the cloud may take back: with the fields that the
// example shows in a comment. A file without such a comment is returned as Read returns it.
func ReadSpot(file string) ([]byte, error) {
	b, err := Read(file)
	if err != nil {
		return nil, err
	}
	return spot(b), nil
}

// Fields in a comment begin with a name, and go on deeper.
var (
	field  = regexp.MustCompile(`^ *# [a-zA-Z]+:( |$)`)
	deeper = regexp.MustCompile(`^ *#  +`)
)

// spot turns the fields that follow a comment on spot VMs into fields.
func spot(content []byte) []byte {
	lines := strings.Split(string(content), "\n")
	about, inFields := false, false
	for i, line := range lines {
		switch {
		case !strings.HasPrefix(strings.TrimLeft(line, " "), "# "):
			about, inFields = false, false
		case about && field.MatchString(line) || inFields && deeper.MatchString(line):
			inFields = true
			lines[i] = strings.Replace(line, "# ", "", 1)
		case inFields:
			about, inFields = false, false
		case strings.Contains(line, "spot VM") || strings.Contains(line, "preemptible VM"):
			about = true
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

// Copy copies a folder of examples, with all that is below it, and replaces the placeholders.
func Copy(from, to string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		b, err := Read(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, info.Mode())
	})
}
