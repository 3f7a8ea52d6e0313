package vm

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// NodeCapacity returns the capacity of the VMs of a class, as the binding derives it from the
// class. It is nil if the binding derives no cpu or no memory.
func (b *Binding) NodeCapacity(class *machinev1alpha1.MachineClass) (*machinev1alpha1.NodeCapacity, error) {
	if b.nodeCapacity == nil {
		return nil, nil
	}
	out, err := b.nodeCapacity.eval(map[string]any{"class": rawClass(class)})
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, b.nodeCapacity.error(1, 0, err.Error())
	}
	c := &machinev1alpha1.NodeCapacity{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, b.nodeCapacity.error(1, 0, fmt.Sprintf("must give a map like {\"capacity\": {\"cpu\": 4, \"memory\": \"16Gi\"}, \"architecture\": \"amd64\"}: %v: gives %s", err, truncate(string(raw))))
	}
	cpu, memory := c.Capacity[corev1.ResourceCPU], c.Capacity[corev1.ResourceMemory]
	if cpu.Sign() <= 0 || memory.Sign() <= 0 {
		return nil, nil
	}
	return c, nil
}
