// Package apis has the CustomResourceDefinitions that the target cluster needs.
package apis

import (
	_ "embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/yaml"
)

//go:embed crds/karpenter.drover.dev_drovernodeclasses.yaml
var nodeClass []byte

// CRDs returns those of Karpenter and that of DroverNodeClass.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	own := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(nodeClass, own); err != nil {
		return nil, fmt.Errorf("cannot decode the CustomResourceDefinition of DroverNodeClass: %w", err)
	}
	return append([]*apiextensionsv1.CustomResourceDefinition{own}, apis.CRDs...), nil
}
