package installation

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	drover "github.com/drover-dev/drover"
)

// DefaultRegistry is the registry that the manifests of the repository name.
const DefaultRegistry = drover.Registry

// An Object is one of a manifest.
type Object struct {
	*unstructured.Unstructured
	// Text is the object in YAML, with the comments of its file.
	Text string
}

// Name is KIND.GROUP/NAME, as kubectl prints it.
func (o Object) Name() string {
	gvk := o.GroupVersionKind()
	kind := strings.ToLower(gvk.Kind)
	if gvk.Group != "" {
		kind += "." + gvk.Group
	}
	return kind + "/" + o.GetName()
}

// newObject of code, without comments.
func newObject(content map[string]any) (Object, error) {
	text, err := yaml.Marshal(content)
	if err != nil {
		return Object{}, err
	}
	return Object{Unstructured: &unstructured.Unstructured{Object: content}, Text: string(text)}, nil
}

// read returns the objects of a file, for a registry.
func read(files fs.FS, file, registry string) ([]Object, error) {
	b, err := fs.ReadFile(files, file)
	if err != nil {
		return nil, err
	}
	text := strings.ReplaceAll(string(b), DefaultRegistry+"/", registry+"/")
	var out []Object
	for _, doc := range strings.Split(text, "\n---\n") {
		json, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(json); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if _, aggregates := u.Object["aggregationRule"]; aggregates {
			// A controller of Kubernetes writes them.
			delete(u.Object, "rules")
		}
		out = append(out, Object{Unstructured: u, Text: strings.TrimSuffix(doc, "\n") + "\n"})
	}
	return out, nil
}

// readAll returns the objects of files, in their order.
func readAll(files fs.FS, registry string, names ...string) ([]Object, error) {
	var out []Object
	for _, name := range names {
		of, err := read(files, name, registry)
		if err != nil {
			return nil, err
		}
		out = append(out, of...)
	}
	return out, nil
}

func exists(files fs.FS, file string) bool {
	_, err := fs.Stat(files, file)
	return err == nil
}

// Placeholder matches a value that a user replaces in an example.
var Placeholder = regexp.MustCompile(`REPLACE-[A-Z0-9]+(?:-[A-Z0-9]+)*`)

// Placeholders returns where an object has placeholders, such as "spec.forProvider.subnetId: REPLACE-SUBNET-ID".
func (o Object) Placeholders() []string {
	return placeholders("", o.Object)
}

func placeholders(at string, value any) []string {
	var out []string
	switch v := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			out = append(out, placeholders(strings.TrimPrefix(at+"."+k, "."), v[k])...)
		}
	case []any:
		for i, e := range v {
			out = append(out, placeholders(fmt.Sprintf("%s[%d]", at, i), e)...)
		}
	case string:
		for _, p := range Placeholder.FindAllString(v, -1) {
			out = append(out, at+": "+p)
		}
	}
	return out
}

// example is the path of an example's file.
func example(cloud, file string) string { return path.Join("examples", cloud, file) }
