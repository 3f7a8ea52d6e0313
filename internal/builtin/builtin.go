// Package builtin reads the objects that Drover has built in: files of YAML, one for each object, that are embedded in the
// package of their kind.
package builtin

import (
	"embed"
	"fmt"
	"path"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

const (
	dir    = "profiles"
	suffix = ".yaml"
)

// Profiles returns a function that reads the files of the folder profiles, once, and returns their objects by the names of the
// files. They must not be changed. Strict is the type of the kind without its methods: the method that decodes the kind
// drops fields that do not fit, and a built-in object with such a field is a fault, for which the function panics.
func Profiles[Strict, Kind any](files embed.FS, as func(*Strict) *Kind) func() map[string]*Kind {
	return sync.OnceValue(func() map[string]*Kind {
		entries, err := files.ReadDir(dir)
		if err != nil {
			panic(err) // It is embedded.
		}
		out := map[string]*Kind{}
		for _, e := range entries {
			b, err := files.ReadFile(path.Join(dir, e.Name()))
			if err != nil {
				panic(err)
			}
			p := new(Strict)
			if err := yaml.UnmarshalStrict(b, p); err != nil {
				panic(fmt.Errorf("%s: %w", e.Name(), err))
			}
			out[strings.TrimSuffix(e.Name(), suffix)] = as(p)
		}
		return out
	})
}
