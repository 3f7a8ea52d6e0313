package clusterapi

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// coreGroup is the API group of Cluster API's own kinds, and the prefix of its labels.
const coreGroup = "cluster.x-k8s.io"

// A contract is a version of the contract between Cluster API and its providers.
type contract string

// Contracts. The newest one comes first in contracts.
const (
	v1beta2 contract = "v1beta2"
	v1beta1 contract = "v1beta1"
)

// contracts that this package fulfills, in the order of preference.
var contracts = []contract{v1beta2, v1beta1}

// A kind is a kind of a provider in the version that fulfills a contract.
type kind struct {
	schema.GroupVersionKind
	contract contract
	// core is the version of Cluster API's own kinds. It is newer than the contract if the provider reads that version and
	// still fulfills the older contract.
	core contract
}

// crdName is the name of the CRD of a kind, by the rule of the contract.
func crdName(k schema.GroupKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(k.WithVersion(""))
	return plural.Resource + "." + k.Group
}

// kindOf chooses the version of a kind by the labels of its CRD: the newest version of the newest contract.
func kindOf(k schema.GroupKind, labels map[string]string) (kind, error) {
	for _, c := range contracts {
		versions := slices.DeleteFunc(strings.Split(labels[coreGroup+"/"+string(c)], "_"), func(v string) bool { return v == "" })
		if len(versions) == 0 {
			continue
		}
		newest := slices.MaxFunc(versions, version.CompareKubeAwareVersionStrings)
		return kind{GroupVersionKind: k.WithVersion(newest), contract: c}, nil
	}
	return kind{}, fmt.Errorf("the CRD %s has neither of the labels %s/%s and %s/%s, which name the versions that fulfil a contract of Cluster API", crdName(k), coreGroup, v1beta2, coreGroup, v1beta1)
}

// coreKind returns a kind of Cluster API itself in the version of the contract.
func (c contract) coreKind(k string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: coreGroup, Version: string(c), Kind: k}
}
