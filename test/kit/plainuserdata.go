package kit

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A PlainField of a VM kind has the user data itself, including the join token, because the kind
// has no field that refers to a Secret with user data.
type PlainField struct {
	// Provider of the classes.
	Provider string
	// Resource is the VM kind.
	Resource schema.GroupResource
	// Path of the field.
	Path []string
}

// PlainUserData lists all such fields. docs/providers/README.md documents the same list. A test
// compares both with each other, and with the Compositions and the CRDs.
var PlainUserData = []PlainField{
	{"upjet-aws", schema.GroupResource{Group: "ec2.aws.m.upbound.io", Resource: "instances"}, forProvider("userDataBase64")},
	{"digitalocean", schema.GroupResource{Group: "droplet.digitalocean.m.crossplane.io", Resource: "droplets"}, forProvider("userData")},
	{"upjet-gcp", schema.GroupResource{Group: "compute.gcp.m.upbound.io", Resource: "instances"}, forProvider("metadata", "user-data")},
	{"scaleway", schema.GroupResource{Group: "instance.scaleway.m.upbound.io", Resource: "servers"}, forProvider("userData", "cloud-init")},
	{"yandex", schema.GroupResource{Group: "compute.yandex-cloud.m.jet.crossplane.io", Resource: "instances"}, forProvider("metadata", "user-data")},
}

func forProvider(path ...string) []string { return append([]string{"spec", "forProvider"}, path...) }

// String returns the path as one text.
func (f PlainField) String() string { return strings.Join(f.Path, ".") }

// PlainFieldOf returns the field of a provider, if it has one.
func PlainFieldOf(provider string) (PlainField, bool) {
	i := slices.IndexFunc(PlainUserData, func(f PlainField) bool { return f.Provider == provider })
	if i < 0 {
		return PlainField{}, false
	}
	return PlainUserData[i], true
}
