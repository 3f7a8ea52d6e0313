package crossplane

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// templates are the chart's templates except those of its Pods, which are processes here, and of
// its webhook Service, which Install replaces by one that leads to the process.
var templates = []string{
	"serviceaccount.yaml",
	"clusterrole.yaml",
	"clusterrolebinding.yaml",
	"secret.yaml",
	"rbac-manager-serviceaccount.yaml",
	"rbac-manager-clusterrole.yaml",
	"rbac-manager-clusterrolebinding.yaml",
	"rbac-manager-allowed-provider-permissions.yaml",
	"rbac-manager-managed-clusterroles.yaml",
}

// renderChart renders Crossplane's own Helm chart with its default values, as "helm install
// crossplane --namespace crossplane-system" would.
func renderChart(chart fs.FS) ([]*unstructured.Unstructured, error) {
	values, err := readYAML(chart, "values.yaml")
	if err != nil {
		return nil, err
	}
	root := template.New("").Funcs(sprig.TxtFuncMap())
	// The functions that Helm adds to sprig and that these templates use.
	root.Funcs(template.FuncMap{
		"toYaml": func(v any) (string, error) {
			b, err := sigsyaml.Marshal(v)
			return strings.TrimSuffix(string(b), "\n"), err
		},
		"include": func(name string, data any) (string, error) {
			var b strings.Builder
			err := root.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
	})
	for _, name := range append([]string{"_helpers.tpl"}, templates...) {
		b, err := fs.ReadFile(chart, "templates/"+name)
		if err != nil {
			return nil, err
		}
		if _, err := root.New(name).Parse(string(b)); err != nil {
			return nil, err
		}
	}
	data := map[string]any{
		"Values": values,
		// The published chart's Chart.yaml, whose versions are set at a release.
		"Chart":   map[string]any{"Name": "crossplane", "Version": strings.TrimPrefix(Version, "v"), "AppVersion": strings.TrimPrefix(Version, "v")},
		"Release": map[string]any{"Name": "crossplane", "Namespace": Namespace, "Service": "Helm"},
	}
	var objects []*unstructured.Unstructured
	for _, name := range templates {
		var b bytes.Buffer
		if err := root.ExecuteTemplate(&b, name, data); err != nil {
			return nil, err
		}
		decoded, err := decode(&b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, decoded...)
	}
	return objects, nil
}

func readYAML(files fs.FS, name string) (map[string]any, error) {
	b, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	var v map[string]any
	if err := sigsyaml.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

func decode(r io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(r, 4096); ; {
		u := &unstructured.Unstructured{}
		if err := d.Decode(&u.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(u.Object) > 0 {
			objects = append(objects, u)
		}
	}
}
