package step

import (
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
)

// managerOfCrossplane is the prefix of the field managers with which Crossplane applies composed
// resources.
const managerOfCrossplane = "apiextensions.crossplane.io/composed/"

// IsSharedField reports whether another client than Crossplane owns a field of a resource. It reads
// the managed fields of the observed composed resource of that name, or else of the required one.
func IsSharedField(req *fnv1.RunFunctionRequest, requirement, name string, path ...string) bool {
	if r, ok := req.GetObserved().GetResources()[name]; ok {
		return isShared(r.GetResource(), path)
	}
	for _, r := range req.GetRequiredResources()[requirement].GetItems() {
		if metadataOf(r.GetResource())["name"].GetStringValue() == name {
			return isShared(r.GetResource(), path)
		}
	}
	return false
}

func isShared(resource *structpb.Struct, path []string) bool {
	for _, m := range metadataOf(resource)["managedFields"].GetListValue().GetValues() {
		entry := m.GetStructValue().GetFields()
		if !strings.HasPrefix(entry["manager"].GetStringValue(), managerOfCrossplane) && owns(entry["fieldsV1"].GetStructValue(), path) {
			return true
		}
	}
	return false
}

// owns reports whether a set of fields contains the field of the path.
func owns(fields *structpb.Struct, path []string) bool {
	for _, p := range path {
		f, ok := fields.GetFields()["f:"+p]
		if !ok {
			return false
		}
		fields = f.GetStructValue()
	}
	return true
}

func metadataOf(resource *structpb.Struct) map[string]*structpb.Value {
	return resource.GetFields()["metadata"].GetStructValue().GetFields()
}

// Omit removes a field from a desired resource: Crossplane then releases its ownership, and the field
// keeps the value of its other owners.
func (r Response) Omit(name string, path ...string) {
	fields := r.Desired.GetResources()[name].GetResource().GetFields()
	for _, p := range path[:len(path)-1] {
		fields = fields[p].GetStructValue().GetFields()
	}
	delete(fields, path[len(path)-1])
}
