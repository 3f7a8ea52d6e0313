package vm

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// A Binding is a compiled input.
type Binding struct {
	provider   string
	VM         Template
	companions []Companion

	providerID *expression
	// These are nil if the input does not have them.
	addresses, guestAddresses, console, running, failed, lost, error *expression
	pollInterval, nodeCapacity                                       *expression

	errors []errorClass
	// instanceTypePath of the VM resource has the instance type, "" if there is no such field.
	instanceTypePath string
	// reboots means that the provider can reboot the VM.
	reboots bool
}

// A Template of a resource.
type Template struct {
	place string // in the input
	GVK   schema.GroupVersionKind
	// pkg is the package of the provider that has the kind, "" if the input does not name it.
	pkg    string
	fields []placement
}

// A Companion of the VM.
type Companion struct {
	Template
	Name     string
	optional bool
	// afterVM means that it depends on the VM: it is created after the VM, and deleted before it.
	afterVM bool
	ready   *expression // nil if the input does not have it
}

// A placement of a value at a path of a resource.
type placement struct {
	path  string
	value *expression
}

type errorClass struct {
	code  fn.ErrorCode
	match *regexp.Regexp
}

// classify returns the code of a provider's error, Transient by default.
func (b *Binding) classify(message string) fn.ErrorCode {
	// Providers report it like insufficient credentials: they cannot get them.
	if _, name := plan.MissingConfigIn(message); name != "" {
		return fn.ErrorProviderConfigNotFound
	}
	for _, c := range b.errors {
		if c.match.MatchString(message) {
			return c.code
		}
	}
	return fn.ErrorTransient
}

// compiled holds bindings, and the errors of invalid ones, by the hash of their input. There is one
// for each provider in use, and temporarily another one for each that changed.
var compiled = lru.New(64)

type compilation struct {
	binding *Binding
	err     error
}

// Bind compiles an input. It returns the cached result if the same input was compiled before.
func Bind(in *fn.Infrastructure) (*Binding, error) {
	b, err := json.Marshal([]any{in.Provider, in.VirtualMachine, in.Companions, in.Status, in.NodeCapacity})
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(b)
	if c, ok := compiled.Get(key); ok {
		return c.(compilation).binding, c.(compilation).err //nolint:forcetypeassert // Nothing else is stored.
	}
	c := compilation{}
	c.binding, c.err = compileBinding(in)
	compiled.Add(key, c)
	return c.binding, c.err
}

func compileBinding(in *fn.Infrastructure) (*Binding, error) {
	for _, required := range []struct{ path, value string }{
		{"provider", in.Provider},
		{"status.providerID", in.Status.ProviderID},
	} {
		if required.value == "" {
			return nil, fmt.Errorf("%s is required", required.path)
		}
	}
	b := &Binding{provider: in.Provider, reboots: in.VirtualMachine.Reboot}
	fields, err := fieldEnv()
	if err != nil {
		return nil, err
	}
	if b.VM, err = compileTemplate(fields, "virtualMachine", in.VirtualMachine.APIVersion, in.VirtualMachine.Kind, in.VirtualMachine.Fields); err != nil {
		return nil, err
	}
	b.VM.pkg = in.VirtualMachine.Package
	if b.instanceTypePath = in.VirtualMachine.InstanceTypePath; b.instanceTypePath != "" {
		if err := checkInstanceTypePath(b.instanceTypePath); err != nil {
			return nil, fmt.Errorf("virtualMachine.instanceTypePath: %q: %w", b.instanceTypePath, err)
		}
	}
	if in.VirtualMachine.PollInterval != "" {
		if b.pollInterval, err = compile(fields, "virtualMachine.pollInterval", in.VirtualMachine.PollInterval, cel.StringType); err != nil {
			return nil, err
		}
	}
	if in.NodeCapacity != "" {
		env, err := classEnv()
		if err != nil {
			return nil, err
		}
		if b.nodeCapacity, err = compile(env, "nodeCapacity", in.NodeCapacity); err != nil {
			return nil, err
		}
	}
	if err := b.compileCompanions(in.Companions); err != nil {
		return nil, err
	}
	if err := b.compileStatus(in.Status); err != nil {
		return nil, err
	}
	return b, nil
}

func compileTemplate(env *cel.Env, place, apiVersion, kind string, fields []fn.FieldBinding) (Template, error) {
	t := Template{place: place}
	for _, required := range []struct{ path, value string }{
		{"apiVersion", apiVersion},
		{"kind", kind},
	} {
		if required.value == "" {
			return t, fmt.Errorf("%s.%s is required", place, required.path)
		}
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return t, fmt.Errorf("%s.apiVersion: %w", place, err)
	}
	t.GVK = gv.WithKind(kind)
	for i, f := range fields {
		place := fmt.Sprintf("%s.fields[%d]", place, i)
		if err := checkPath(f.Path); err != nil {
			return t, fmt.Errorf("%s.path: %q: %w", place, f.Path, err)
		}
		e, err := compile(env, fmt.Sprintf("%s.value (of %s)", place, f.Path), f.Value)
		if err != nil {
			return t, err
		}
		t.fields = append(t.fields, placement{path: f.Path, value: e})
	}
	return t, nil
}

// companionName is the pattern in the input's schema, which Crossplane does not apply.
var companionName = regexp.MustCompile(`^[a-z][a-z0-9]{0,19}$`)

func (b *Binding) compileCompanions(companions []fn.CompanionBinding) error {
	env, err := companionEnv()
	if err != nil {
		return err
	}
	before, err := fieldEnv()
	if err != nil {
		return err
	}
	after, err := dependentEnv()
	if err != nil {
		return err
	}
	for i, in := range companions {
		place := fmt.Sprintf("companions[%d]", i)
		if !companionName.MatchString(in.Name) {
			return fmt.Errorf("%s.name: %q must be of at most 20 lower-case letters and digits, a letter first", place, in.Name)
		}
		if slices.ContainsFunc(b.companions, func(c Companion) bool { return c.Name == in.Name }) {
			return fmt.Errorf("%s.name: there is a companion %q before it", place, in.Name)
		}
		if last := len(b.companions) - 1; last >= 0 && b.companions[last].afterVM && !in.AfterVM {
			return fmt.Errorf("%s.afterVM: companion %q is created before the VM, and must be before %q, which is created after the VM", place, in.Name, b.companions[last].Name)
		}
		c := Companion{Name: in.Name, optional: in.Optional, afterVM: in.AfterVM}
		fields := before
		if c.afterVM {
			fields = after
		}
		if c.Template, err = compileTemplate(fields, place, in.APIVersion, in.Kind, in.Fields); err != nil {
			return err
		}
		c.pkg = cmp.Or(in.Package, b.VM.pkg)
		if in.Ready != "" {
			if c.ready, err = compile(env, place+".ready", in.Ready, cel.BoolType); err != nil {
				return err
			}
		}
		b.companions = append(b.companions, c)
	}
	return nil
}

// checkPath restricts a binding to the resource's spec: the other fields do not depend on the
// cloud.
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

// forProviderPrefix of the fields that a class may set.
const forProviderPrefix = "spec.forProvider."

// checkInstanceTypePath restricts the path to the part of the resource that is taken from the class.
func checkInstanceTypePath(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	if !strings.HasPrefix(path, forProviderPrefix) {
		return fmt.Errorf("must be below spec.forProvider")
	}
	return nil
}

func (b *Binding) compileStatus(s fn.StatusBinding) error {
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
		{&b.guestAddresses, "guestAddresses", s.GuestAddresses, nil},
		{&b.console, "console", s.Console, []*cel.Type{cel.StringType}},
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
		if !c.Code.IsKnown() {
			return fmt.Errorf("status.errorClasses[%d].code: %q must be one of %q", i, c.Code, fn.ErrorCodes())
		}
		re, err := regexp.Compile(c.Match)
		if err != nil {
			return fmt.Errorf("status.errorClasses[%d].match: %w", i, err)
		}
		b.errors = append(b.errors, errorClass{code: c.Code, match: re})
	}
	return nil
}
