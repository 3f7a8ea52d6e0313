package infrastructure

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
)

// A binding is a compiled input.
type binding struct {
	provider string
	vm       schema.GroupVersionKind
	fields   []placement

	providerID *expression
	// The others are nil when the input does not have them.
	addresses, running, failed, lost, error *expression

	errors []errorClass
}

// A placement of a value at a path of a VM.
type placement struct {
	path  string
	value *expression
}

type errorClass struct {
	code  fn.ErrorCode
	match *regexp.Regexp
}

// classify an error of the provider.
func (b *binding) classify(message string) fn.ErrorCode {
	for _, c := range b.errors {
		if c.match.MatchString(message) {
			return c.code
		}
	}
	return fn.ErrorTransient
}

// compiled holds bindings, and the errors of those that do not compile, by the
// hash of their input. There is one for each provider in use, and for a while one
// more for each that changed.
var compiled = lru.New(64)

type compilation struct {
	binding *binding
	err     error
}

// bind compiles an input, or remembers that it did.
func bind(in *fn.Infrastructure) (*binding, error) {
	b, err := json.Marshal([]any{in.Provider, in.VirtualMachine, in.Status})
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(b)
	if c, ok := compiled.Get(key); ok {
		return c.(compilation).binding, c.(compilation).err
	}
	c := compilation{}
	c.binding, c.err = compileBinding(in)
	compiled.Add(key, c)
	return c.binding, c.err
}

func compileBinding(in *fn.Infrastructure) (*binding, error) {
	gv, err := schema.ParseGroupVersion(in.VirtualMachine.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("virtualMachine.apiVersion: %w", err)
	}
	for path, value := range map[string]string{
		"provider":                  in.Provider,
		"virtualMachine.apiVersion": in.VirtualMachine.APIVersion,
		"virtualMachine.kind":       in.VirtualMachine.Kind,
		"status.providerID":         in.Status.ProviderID,
	} {
		if value == "" {
			return nil, fmt.Errorf("%s is required", path)
		}
	}
	b := &binding{provider: in.Provider, vm: gv.WithKind(in.VirtualMachine.Kind)}
	if err := b.compileFields(in.VirtualMachine.Fields); err != nil {
		return nil, err
	}
	if err := b.compileStatus(in.Status); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *binding) compileFields(fields []fn.FieldBinding) error {
	env, err := fieldEnv()
	if err != nil {
		return err
	}
	for i, f := range fields {
		place := fmt.Sprintf("virtualMachine.fields[%d]", i)
		if err := checkPath(f.Path); err != nil {
			return fmt.Errorf("%s.path: %q: %w", place, f.Path, err)
		}
		e, err := compile(env, fmt.Sprintf("%s.value (of %s)", place, f.Path), f.Value)
		if err != nil {
			return err
		}
		b.fields = append(b.fields, placement{path: f.Path, value: e})
	}
	return nil
}

// checkPath keeps a binding to the VM's spec: the rest of a VM resource is not a
// matter of its cloud.
func checkPath(path string) error {
	segments, err := fieldpath.Parse(path)
	if err != nil {
		return err
	}
	if len(segments) < 2 || segments[0].Field != "spec" {
		return fmt.Errorf("must be below spec")
	}
	if strings.Contains(path, "*") {
		return fmt.Errorf("must name one field, without wildcards")
	}
	return nil
}

func (b *binding) compileStatus(s fn.StatusBinding) error {
	env, err := statusEnv()
	if err != nil {
		return err
	}
	for _, e := range []struct {
		into *(*expression)
		name string
		text string
		of   []*cel.Type
	}{
		{&b.providerID, "providerID", s.ProviderID, []*cel.Type{cel.StringType}},
		{&b.addresses, "addresses", s.Addresses, nil},
		{&b.running, "running", s.Running, []*cel.Type{cel.BoolType}},
		{&b.failed, "failed", s.Failed, []*cel.Type{cel.StringType}},
		{&b.error, "error", s.Error, []*cel.Type{cel.StringType}},
		{&b.lost, "lost", s.Lost, []*cel.Type{cel.BoolType}},
	} {
		if e.text == "" {
			continue
		}
		if *e.into, err = compile(env, "status."+e.name, e.text, e.of...); err != nil {
			return err
		}
	}
	for i, c := range s.ErrorClasses {
		re, err := regexp.Compile(c.Match)
		if err != nil {
			return fmt.Errorf("status.errorClasses[%d].match: %w", i, err)
		}
		b.errors = append(b.errors, errorClass{code: c.Code, match: re})
	}
	return nil
}
