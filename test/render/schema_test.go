package render

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/test/kit"
)

// publish the schemas of CRD files like the API server: an OpenAPI document for each group and
// version, in a file of the folder. Crossplane finds a kind only in the first document of its group
// and version.
func publish(dir string, crdFiles ...string) ([]string, error) {
	documents := map[schema.GroupVersion][]*spec3.OpenAPI{}
	for _, f := range crdFiles {
		gv, document, err := documentOf(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		documents[gv] = append(documents[gv], document)
	}
	var out []string
	for gv, all := range documents {
		merged, err := builder.MergeSpecsV3(all...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", gv, err)
		}
		b, err := json.Marshal(merged)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, gv.Group+"_"+gv.Version+".json")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			return nil, err
		}
		out = append(out, file)
	}
	return out, nil
}

func documentOf(crdFile string) (schema.GroupVersion, *spec3.OpenAPI, error) {
	crd := &extv1.CustomResourceDefinition{}
	b, err := os.ReadFile(filepath.Join(kit.Root(), crdFile))
	if err == nil {
		err = yaml.UnmarshalStrict(b, crd)
	}
	if err != nil {
		return schema.GroupVersion{}, nil, err
	}
	// Each kind that Drover composes has one version.
	gv := schema.GroupVersion{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name}
	document, err := builder.BuildOpenAPIV3(crd, gv.Version, builder.Options{})
	return gv, document, err
}
