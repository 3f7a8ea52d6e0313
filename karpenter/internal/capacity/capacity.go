// Package capacity computes the capacity that a Node of a class has before it exists: from spec.nodeCapacity of the class, and
// otherwise by the expression nodeCapacity in the Composition of its provider, as Drover does for the cluster-autoscaler.
package capacity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/lru"

	"github.com/drover-dev/drover/karpenter/internal/drover"
)

const (
	// costLimit of an expression, in CEL's units.
	costLimit = 1_000_000

	// usablePerMille of the memory of a VM is what its Node reports: firmware and kernel reserve the rest.
	usablePerMille int64 = 925

	// defaultPods is the number of pods of a kubelet whose configuration has none.
	defaultPods = 110

	// defaultEviction is the memory below which a kubelet evicts pods, if its configuration has no threshold.
	defaultEviction = "100Mi"
)

// A Node that does not exist yet.
type Node struct {
	// Capacity that it reports.
	Capacity corev1.ResourceList
	// Reserved is the part of the capacity that pods cannot use, by the configuration of the kubelet.
	KubeReserved, SystemReserved, Eviction corev1.ResourceList
	// Architecture and OperatingSystem, amd64 and linux by default.
	Architecture, OperatingSystem string
}

// An Expression is the nodeCapacity of a Composition.
type Expression string

// ExpressionOf returns the expression of a Composition, empty if the Composition has none.
func ExpressionOf(c *drover.Composition) Expression {
	for _, step := range c.Spec.Pipeline {
		if step.Input == nil {
			continue
		}
		in := struct {
			Kind         string `json:"kind"`
			NodeCapacity string `json:"nodeCapacity"`
		}{}
		if err := json.Unmarshal(step.Input.Raw, &in); err == nil && in.Kind == "Infrastructure" && in.NodeCapacity != "" {
			return Expression(in.NodeCapacity)
		}
	}
	return ""
}

// Of returns the Node of a class. Cpu and memory are zero if neither the class nor the expression has them. The error is why
// the expression could not be evaluated; the Node then has the values of the class.
func Of(class drover.MachineClassSpec, e Expression) (Node, error) {
	n := Node{Capacity: corev1.ResourceList{}, Architecture: "amd64", OperatingSystem: "linux"}
	derived, err := e.eval(class)
	for _, c := range []*drover.NodeCapacity{derived, class.NodeCapacity} {
		if c == nil {
			continue
		}
		maps.Copy(n.Capacity, c.Capacity)
		n.Architecture = cmp.Or(c.Architecture, n.Architecture)
		n.OperatingSystem = cmp.Or(c.OperatingSystem, n.OperatingSystem)
	}
	if kubelet := n.reserve(class.Kubelet); kubelet != nil {
		return n, kubelet
	}
	if n.IsKnown() {
		err = nil
	}
	return n, err
}

// IsKnown reports whether it is known which pods fit.
func (n Node) IsKnown() bool {
	return n.Capacity.Cpu().Sign() > 0 && n.Capacity.Memory().Sign() > 0
}

// reserve sets the values that the configuration of the kubelet decides.
func (n *Node) reserve(k drover.Kubelet) error {
	config := struct {
		MaxPods        *int64            `json:"maxPods"`
		KubeReserved   map[string]string `json:"kubeReserved"`
		SystemReserved map[string]string `json:"systemReserved"`
		EvictionHard   map[string]string `json:"evictionHard"`
	}{}
	if k.Configuration != nil {
		if err := json.Unmarshal(k.Configuration.Raw, &config); err != nil {
			return fmt.Errorf("spec.kubelet.configuration: %w", err)
		}
	}
	switch pods, has := n.Capacity[corev1.ResourcePods]; {
	case k.MaxPods != nil:
		n.Capacity[corev1.ResourcePods] = *resource.NewQuantity(int64(*k.MaxPods), resource.DecimalSI)
	case config.MaxPods != nil:
		n.Capacity[corev1.ResourcePods] = *resource.NewQuantity(*config.MaxPods, resource.DecimalSI)
	case !has || pods.IsZero():
		n.Capacity[corev1.ResourcePods] = *resource.NewQuantity(defaultPods, resource.DecimalSI)
	}
	var err error
	if n.KubeReserved, err = quantities("kubeReserved", config.KubeReserved); err != nil {
		return err
	}
	if n.SystemReserved, err = quantities("systemReserved", config.SystemReserved); err != nil {
		return err
	}
	memory, has := config.EvictionHard["memory.available"]
	if !has {
		memory = defaultEviction
	}
	n.Eviction, err = n.eviction(memory)
	return err
}

// eviction returns the threshold of a quantity like 100Mi, or of a percentage of the memory.
func (n *Node) eviction(threshold string) (corev1.ResourceList, error) {
	percent := 0.0
	if _, err := fmt.Sscanf(threshold, "%f%%", &percent); err == nil && threshold[len(threshold)-1] == '%' {
		q := resource.NewQuantity(int64(float64(n.Capacity.Memory().Value())*percent/100), resource.BinarySI)
		return corev1.ResourceList{corev1.ResourceMemory: *q}, nil
	}
	q, err := resource.ParseQuantity(threshold)
	if err != nil {
		return nil, fmt.Errorf("spec.kubelet.configuration.evictionHard[memory.available]: is %q: must be a quantity like 100Mi, or a percentage like 5%%", threshold)
	}
	return corev1.ResourceList{corev1.ResourceMemory: q}, nil
}

func quantities(field string, in map[string]string) (corev1.ResourceList, error) {
	out := corev1.ResourceList{}
	for name, v := range in {
		if name == "pid" {
			continue // It is no resource of a Node.
		}
		q, err := resource.ParseQuantity(v)
		if err != nil {
			return nil, fmt.Errorf("spec.kubelet.configuration.%s[%s]: is %q: must be a quantity like 100m", field, name, v)
		}
		out[corev1.ResourceName(name)] = q
	}
	return out, nil
}

// eval returns the capacity of the Node of a VM, nil if the expression derives none from the class.
func (e Expression) eval(class drover.MachineClassSpec) (*drover.NodeCapacity, error) {
	if e == "" {
		return nil, nil
	}
	program, err := e.program()
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(map[string]any{"spec": class})
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	val, _, err := program.Eval(map[string]any{"class": integers(object)})
	if err != nil {
		return nil, fmt.Errorf("nodeCapacity of the Composition: %w", err)
	}
	if o, ok := val.(*types.Optional); ok {
		if !o.HasValue() {
			return nil, nil
		}
		val = o.GetValue()
	}
	native, err := val.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, fmt.Errorf("nodeCapacity of the Composition: %w", err)
	}
	raw, err = native.(*structpb.Value).MarshalJSON() //nolint:forcetypeassert // That is what was asked for.
	if err != nil {
		return nil, err
	}
	c := &drover.NodeCapacity{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("nodeCapacity of the Composition gives %s: %w", raw, err)
	}
	memory := c.Capacity.Memory()
	if c.Capacity.Cpu().Sign() <= 0 || memory.Sign() <= 0 {
		return nil, nil
	}
	const mebi int64 = 1 << 20
	c.Capacity[corev1.ResourceMemory] = *resource.NewQuantity(memory.Value()/1000*usablePerMille/mebi*mebi, resource.BinarySI)
	return c, nil
}

// compiled holds the programs of the expressions that are in use, one per provider.
var compiled = lru.New(64)

func (e Expression) program() (cel.Program, error) {
	if p, ok := compiled.Get(e); ok {
		return p.(cel.Program), nil //nolint:forcetypeassert // Nothing else is stored.
	}
	p, err := e.compile()
	if err == nil {
		compiled.Add(e, p)
	}
	return p, err
}

// compile the expression in the language that the input of Drover's step infrastructure documents.
func (e Expression) compile() (cel.Program, error) {
	env, err := cel.NewEnv(
		cel.Variable("class", cel.DynType), cel.OptionalTypes(),
		ext.Strings(), ext.Lists(), ext.Encoders(), ext.Math(), ext.Regex(), ext.Bindings(), ext.TwoVarComprehensions(),
	)
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(string(e))
	if issues.Err() != nil {
		return nil, fmt.Errorf("nodeCapacity of the Composition: %w", issues.Err())
	}
	return env.Program(ast, cel.CostLimit(costLimit))
}

// integers turns whole numbers into integers, as an API server decodes them.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = integers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = integers(e)
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}
