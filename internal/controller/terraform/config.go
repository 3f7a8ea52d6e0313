package terraform

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/terraform/v1alpha1"
	"github.com/drover-dev/drover/internal/allow"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/terraform/plugin"
)

// configs are the provider's kinds of configurations. There is no namespaced one: a user who may
// write a configuration can run code in this process's pod.
var configs = providerconfig.Configs{
	GroupVersion: v1alpha1.SchemeGroupVersion,
	Cluster:      &v1alpha1.ClusterProviderConfig{},
}

// bindingsKept is how many compiled configurations are kept.
const bindingsKept = 256

// A configuration is a ClusterProviderConfig with its credentials.
type configuration struct {
	name     string
	spec     v1alpha1.ProviderConfigSpec
	bindings map[string]*binding
	settings plugin.Settings
	// digest of the fields that are not secret.
	digest string
	// secrets that no error may contain.
	secrets []string
}

// A resolver reads configurations.
type resolver struct {
	kube     client.Reader
	compiled *lru.Cache
}

// resolve returns the configuration of a VM. It is read each time, so that a change takes effect at
// once.
func (r *resolver) resolve(ctx context.Context, vm *v1alpha1.VirtualMachine) (*configuration, error) {
	got, err := configs.Get(ctx, r.kube, vm)
	if err != nil {
		return nil, err
	}
	pc, ok := got.(*v1alpha1.ClusterProviderConfig)
	if !ok {
		return nil, fmt.Errorf("%T is no ClusterProviderConfig", got)
	}
	c := &configuration{name: fmt.Sprintf("ClusterProviderConfig %q", pc.Name), spec: pc.Spec}
	if patterns := pc.Spec.AllowedNamespaces; patterns != nil && !allow.Namespace(patterns, vm.GetNamespace()) {
		return nil, fmt.Errorf("%s: spec.allowedNamespaces does not allow the namespace %s: must match one of %q", c.name, vm.GetNamespace(), patterns)
	}
	if c.bindings, err = r.bindings(pc); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	if err := c.configure(ctx, r.kube, pc); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return c, nil
}

// bindings returns the bindings of a configuration, compiled once per generation.
func (r *resolver) bindings(pc *v1alpha1.ClusterProviderConfig) (map[string]*binding, error) {
	key := fmt.Sprintf("%s/%d", pc.GetUID(), pc.GetGeneration())
	if v, ok := r.compiled.Get(key); ok && pc.GetUID() != "" {
		if b, ok := v.(map[string]*binding); ok {
			return b, nil
		}
	}
	out := map[string]*binding{}
	for i, t := range pc.Spec.VirtualMachines {
		b, err := bind(i, t)
		if err != nil {
			return nil, err
		}
		out[t.Type] = b
	}
	r.compiled.Add(key, out)
	return out, nil
}

// configure reads the arguments of the provider.
func (c *configuration) configure(ctx context.Context, kube client.Reader, pc *v1alpha1.ClusterProviderConfig) error {
	arguments := map[string]any{}
	if pc.Spec.Configuration != nil {
		if err := json.Unmarshal(pc.Spec.Configuration.Raw, &arguments); err != nil {
			return fmt.Errorf("spec.configuration: must be an object: %w", err)
		}
	}
	sum, err := digest(pc.Spec.Provider.Source, arguments)
	if err != nil {
		return err
	}
	c.digest = sum
	if pc.Spec.Credentials != nil {
		ref := pc.Spec.Credentials.SecretRef
		secret := map[string]any{}
		key := providerconfig.SecretKey{Namespace: ref.Namespace, Name: ref.Name, Key: ref.Key}
		if err := key.Read(ctx, kube, &secret, `{"token": "..."}`); err != nil {
			return err
		}
		c.secrets = textsIn(secret)
		maps.Copy(arguments, secret)
	}
	p := pc.Spec.Provider
	c.settings = plugin.Settings{
		Source:        plugin.Source{Address: p.Source, Version: p.Version, SHA256: p.SHA256},
		Configuration: arguments,
	}
	return nil
}

func digest(parts ...any) (string, error) {
	b, err := json.Marshal(parts)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), nil
}

// textsIn returns all strings in a value.
func textsIn(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = append(out, textsIn(e)...)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, textsIn(v[k])...)
		}
	}
	return out
}

// typeOf returns the type of a VM that is to be created.
func (c *configuration) typeOf(vm *v1alpha1.VirtualMachine) (*binding, error) {
	typ := vm.Spec.ForProvider.Type
	if typ == "" {
		if len(c.spec.VirtualMachines) != 1 {
			return nil, fmt.Errorf("%s: spec.forProvider.type is required: must be one of %s", c.name, c.types())
		}
		typ = c.spec.VirtualMachines[0].Type
	}
	b := c.bindings[typ]
	if b == nil {
		return nil, fmt.Errorf("%s: spec.forProvider.type: invalid value %q: spec.virtualMachines allows %s", c.name, typ, c.types())
	}
	return b, nil
}

func (c *configuration) types() string {
	return strings.Join(slices.Sorted(maps.Keys(c.bindings)), ", ")
}
