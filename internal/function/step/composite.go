package step

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// CompositeKind returns the kind of the XR.
func CompositeKind(req *fnv1.RunFunctionRequest) schema.GroupVersionKind {
	xr := req.GetObserved().GetComposite().GetResource().GetFields()
	return schema.FromAPIVersionAndKind(xr["apiVersion"].GetStringValue(), xr["kind"].GetStringValue())
}

// Claim returns the namespace and name of the claim of the XR, empty if it has none.
func Claim(req *fnv1.RunFunctionRequest) types.NamespacedName {
	spec := req.GetObserved().GetComposite().GetResource().GetFields()["spec"].GetStructValue()
	ref := spec.GetFields()["claimRef"].GetStructValue().GetFields()
	return types.NamespacedName{Namespace: ref["namespace"].GetStringValue(), Name: ref["name"].GetStringValue()}
}
