package vm_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/vm"
)

// A Composition binds the VM kind of a cloud by the input of its step infrastructure. The spec of the
// VM resource begins with forProvider of the Machine's class. Each field of the binding then sets one
// path to the value of a CEL expression: a map is merged over that of the class, as labels here, and
// without a value, as for the zone here, the path keeps that of the class.
func ExampleBind() {
	const composition = `
provider: example
virtualMachine:
  apiVersion: compute.example.org/v1
  kind: Server
  fields:
    - path: spec.forProvider.name
      value: name
    - path: spec.forProvider.userDataSecretRef
      value: '{"name": userData.secretName, "key": userData.key}'
    - path: spec.forProvider.labels
      value: '{"cluster": machine.spec.clusterRef.name}'
    - path: spec.forProvider.zone
      value: 'failureDomain != "" ? optional.of(failureDomain) : optional.none()'
status:
  providerID: 'vm.status.?id.orValue("")'
`
	input := &fn.Infrastructure{}
	if err := yaml.UnmarshalStrict([]byte(composition), input); err != nil {
		fmt.Println(err)
		return
	}
	binding, err := vm.Bind(input)
	if err != nil {
		fmt.Println(err)
		return
	}

	class := &machinev1alpha1.MachineClass{}
	class.Name, class.Spec.Provider = "small", "example"
	class.Spec.ProviderConfigRef = machinev1alpha1.VMProviderConfigReference{Kind: "ClusterProviderConfig", Name: "account"}
	class.Spec.ForProvider = &runtime.RawExtension{Raw: []byte(`{"type": "2-cores", "zone": "a", "labels": {"team": "blue"}}`)}

	machine := &machinev1alpha1.Machine{}
	machine.Namespace, machine.Name, machine.UID = "default", "workers-x7k2p", "uid-of-the-machine"
	machine.Spec.ClusterRef.Name = "production"
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(machine)
	if err != nil {
		fmt.Println(err)
		return
	}

	desired := vm.Plan(binding, nil, vm.Observed{
		Machine: machine, RawMachine: raw, Class: class, Installation: "uid-of-the-installation",
		Bootstrap: plan.Bootstrap{SecretName: "workers-x7k2p-user-data", Key: "userData"},
	})

	fmt.Println(desired.VM.GetAPIVersion(), desired.VM.GetKind())
	spec, err := yaml.Marshal(desired.VM.Object["spec"])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(spec))
	// Output:
	// compute.example.org/v1 Server
	// forProvider:
	//   labels:
	//     cluster: production
	//     team: blue
	//   name: workers-x7k2p-pdq4v
	//   type: 2-cores
	//   userDataSecretRef:
	//     key: userData
	//     name: workers-x7k2p-user-data
	//   zone: a
	// providerConfigRef:
	//   kind: ClusterProviderConfig
	//   name: account
}
