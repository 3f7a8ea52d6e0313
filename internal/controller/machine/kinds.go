package machine

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

var machineKind = machinev1alpha1.MachineGroupVersionKind

// roleAnnotation is Crossplane's annotation for the name of a composed resource in its composite.
const roleAnnotation = "crossplane.io/composition-resource-name"

// fieldOwner of what pipelines desire of composed resources.
const fieldOwner = client.FieldOwner("drover-machine")

// labelComposite is on everything that Crossplane composes.
const labelComposite = "crossplane.io/composite"

// managementPolicies is the field of every managed resource.
const managementPolicies = "managementPolicies"

var revisionKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}
