package render

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/test/kit"
)

// publish the schemas of CRD files like the API server, each as an OpenAPI document in a file of
// the folder.
func publish(dir string, crdFiles ...string) ([]string, error) {
	var out []string
	for _, f := range crdFiles {
		file, err := publishOne(dir, f)
		if err != nil {
			return nil, err
		}
		out = append(out, file)
	}
	return out, nil
}

func publishOne(dir, crdFile string) (string, error) {
	b, err := os.ReadFile(filepath.Join(kit.Root(), crdFile))
	if err != nil {
		return "", err
	}
	crd := &extv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(b, crd); err != nil {
		return "", fmt.Errorf("%s: %w", crdFile, err)
	}
	// Each kind that Drover composes has one version.
	document, err := builder.BuildOpenAPIV3(crd, crd.Spec.Versions[0].Name, builder.Options{})
	if err != nil {
		return "", fmt.Errorf("%s: %w", crdFile, err)
	}
	if b, err = json.Marshal(document); err != nil {
		return "", err
	}
	file := filepath.Join(dir, crd.Name+".json")
	return file, os.WriteFile(file, b, 0o600)
}
