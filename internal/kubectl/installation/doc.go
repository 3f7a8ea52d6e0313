// Package installation decides which objects install Drover for a cloud, in which order, when a package is
// ready, and which steps are left to the user. It reads no cluster: "kubectl drover install" carries it out.
//
// Each cloud has a Composition in apis/machine/compositions. Its other files follow from its name:
//
//	package/provider-drover/rbac-NAME.yaml, or examples/NAME/rbac.yaml for a provider that is not Drover's    rights
//	examples/NAME/providerconfig.yaml                                                                         configuration
//	examples/NAME/machineclass.yaml, machinedeployment.yaml, orphancollector.yaml                             example
//
// Values that only the user knows are placeholders in these files: REPLACE-SUBNET-ID. An object with a placeholder
// is never applied.
package installation
