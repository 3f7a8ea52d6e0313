package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/grpc"
)

// terraformVersion is the version that providers receive. Some refuse versions before 0.12.
const terraformVersion = "1.9.0"

// names of the calls in version 5 of the protocol, where they differ from those of version 6.
var names5 = map[string]string{
	"GetProviderSchema":      "GetSchema",
	"ValidateProviderConfig": "PrepareProviderConfig",
	"ConfigureProvider":      "Configure",
	"ValidateResourceConfig": "ValidateResourceTypeConfig",
}

// A Provider is the client of a provider's process.
type Provider struct {
	conn    grpc.ClientConnInterface
	version int
	schema  *ProviderSchema
}

// A State of a resource.
type State struct {
	// Value is null if the resource does not exist.
	Value cty.Value
	// Private is the provider's own.
	Private []byte
}

// Exists reports whether there is a resource.
func (s State) Exists() bool { return s.Value != cty.NilVal && !s.Value.IsNull() }

// A Plan is the planned creation of a resource.
type Plan struct {
	config, planned []byte
	private         []byte
}

// ErrNoType is the error for a resource type that a provider does not have.
var ErrNoType = errors.New("the provider has no such resource type")

// call calls a procedure.
func (p *Provider) call(ctx context.Context, name string, req message) (message, error) {
	if old, ok := names5[name]; ok && p.version == 5 {
		name = old
	}
	resp := message{}
	err := p.conn.Invoke(ctx, fmt.Sprintf("/tfplugin%d.Provider/%s", p.version, name), &req, &resp, grpc.ForceCodec(rawCodec{}))
	if err != nil {
		return nil, &CallError{Call: name, Err: err}
	}
	return resp, nil
}

// A CallError means that a provider did not respond: its process ended, or the timeout expired. The call may
// have had an effect.
type CallError struct {
	Call string
	Err  error
}

func (e *CallError) Error() string {
	return fmt.Sprintf("the provider did not answer %s: %v", e.Call, e.Err)
}

// Unwrap returns the error of gRPC.
func (e *CallError) Unwrap() error { return e.Err }

// Schema of the provider.
func (p *Provider) Schema() *ProviderSchema { return p.schema }

func (p *Provider) loadSchema(ctx context.Context) error {
	resp, err := p.call(ctx, "GetProviderSchema", nil)
	if err != nil {
		return err
	}
	p.schema, err = readProviderSchema(resp)
	return err
}

// configure configures the provider, after its own check of the configuration.
func (p *Provider) configure(ctx context.Context, configuration map[string]any) error {
	block := p.schema.Provider.Block
	v, err := block.Config(configuration)
	if err != nil {
		return err
	}
	config, err := msgpack.Marshal(v, block.ImpliedType())
	if err != nil {
		return err
	}
	var check message
	check.value(1, config)
	resp, err := p.call(ctx, "ValidateProviderConfig", check)
	if err != nil {
		return err
	}
	// The diagnostics of both versions are field 2. Version 5 may set defaults.
	prepared, err := p.answer(resp, 1, 2)
	if err != nil {
		return err
	}
	if p.version == 5 && len(prepared.value.msgpack) > 0 {
		config = prepared.value.msgpack
	}
	var req message
	req.text(1, terraformVersion)
	req.value(2, config)
	req.clientCapabilities(3)
	if resp, err = p.call(ctx, "ConfigureProvider", req); err != nil {
		return err
	}
	_, err = p.answer(resp, 0, 1)
	return err
}

// An answer has the common parts of responses.
type answer struct {
	value   dynamicValue
	private []byte
}

// answer reads the value, the private data and the diagnostics of a response, by their numbers. A
// response with an error may have a value.
func (p *Provider) answer(resp message, value, diagnostics int32, private ...int32) (answer, error) {
	var a answer
	var errs [][]byte
	err := each(resp, func(f field) (err error) {
		switch n := int32(f.number); {
		case n == diagnostics:
			errs = append(errs, f.bytes)
		case n == value:
			a.value, err = readDynamicValue(f.bytes)
		case len(private) > 0 && n == private[0]:
			a.private = f.bytes
		}
		return err
	})
	if err != nil {
		return a, err
	}
	return a, diagnosticError(errs)
}

// schemaOf returns the schema of a resource type.
func (p *Provider) schemaOf(typ string) (*Schema, error) {
	if s := p.schema.Resources[typ]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%q: %w", typ, ErrNoType)
}

// decode decodes a value of a resource type. Values that are still unknown are null.
func (s *Schema) decode(v dynamicValue) (cty.Value, error) {
	t := s.Block.ImpliedType()
	switch {
	case len(v.msgpack) > 0:
		got, err := msgpack.Unmarshal(v.msgpack, t)
		if err != nil {
			return cty.NilVal, fmt.Errorf("cannot decode the provider's value: %w", err)
		}
		return cty.UnknownAsNull(got), nil
	case len(v.json) > 0:
		return ctyjson.Unmarshal(v.json, t)
	default:
		return cty.NullVal(t), nil
	}
}

func (s *Schema) encode(v cty.Value) ([]byte, error) {
	t := s.Block.ImpliedType()
	if v == cty.NilVal {
		v = cty.NullVal(t)
	}
	return msgpack.Marshal(v, t)
}

// PlanCreate has the provider check arguments, and plan the resource. Nothing is created.
func (p *Provider) PlanCreate(ctx context.Context, typ string, arguments map[string]any) (*Plan, error) {
	s, err := p.schemaOf(typ)
	if err != nil {
		return nil, err
	}
	v, err := s.Block.Config(arguments)
	if err != nil {
		return nil, err
	}
	config, err := s.encode(v)
	if err != nil {
		return nil, err
	}
	var check message
	check.text(1, typ)
	check.value(2, config)
	check.clientCapabilities(3)
	resp, err := p.call(ctx, "ValidateResourceConfig", check)
	if err != nil {
		return nil, err
	}
	if _, err := p.answer(resp, 0, 1); err != nil {
		return nil, err
	}
	return p.plan(ctx, typ, s, v, config)
}

func (p *Provider) plan(ctx context.Context, typ string, s *Schema, v cty.Value, config []byte) (*Plan, error) {
	proposed, err := s.encode(s.Block.proposed(v))
	if err != nil {
		return nil, err
	}
	none, err := s.encode(cty.NilVal)
	if err != nil {
		return nil, err
	}
	var req message
	req.text(1, typ)
	req.value(2, none)
	req.value(3, proposed)
	req.value(4, config)
	req.clientCapabilities(7)
	resp, err := p.call(ctx, "PlanResourceChange", req)
	if err != nil {
		return nil, err
	}
	a, err := p.answer(resp, 1, 4, 3)
	if err != nil {
		return nil, err
	}
	return &Plan{config: config, planned: a.value.msgpack, private: a.private}, nil
}

// ApplyCreate carries out a plan. Even with an error there may be a state, namely of a resource that was
// created, but not as it was planned.
func (p *Provider) ApplyCreate(ctx context.Context, typ string, plan *Plan) (State, error) {
	s, err := p.schemaOf(typ)
	if err != nil {
		return State{}, err
	}
	none, err := s.encode(cty.NilVal)
	if err != nil {
		return State{}, err
	}
	return p.apply(ctx, typ, s, none, plan)
}

func (p *Provider) apply(ctx context.Context, typ string, s *Schema, prior []byte, plan *Plan) (State, error) {
	var req message
	req.text(1, typ)
	req.value(2, prior)
	req.value(3, plan.planned)
	req.value(4, plan.config)
	req.bytes(5, plan.private)
	resp, err := p.call(ctx, "ApplyResourceChange", req)
	if err != nil {
		return State{}, err
	}
	return p.state(resp, s, 1, 3, 2)
}

// state returns the state of a response, also of one with an error.
func (p *Provider) state(resp message, s *Schema, value, diagnostics, private int32) (State, error) {
	a, failed := p.answer(resp, value, diagnostics, private)
	v, err := s.decode(a.value)
	if err != nil {
		return State{}, errors.Join(failed, err)
	}
	return State{Value: v, Private: a.private}, failed
}

// Read returns the current state of a resource. It does not exist if the resource is lost.
func (p *Provider) Read(ctx context.Context, typ string, state State) (State, error) {
	s, err := p.schemaOf(typ)
	if err != nil {
		return State{}, err
	}
	current, err := s.encode(state.Value)
	if err != nil {
		return State{}, err
	}
	var req message
	req.text(1, typ)
	req.value(2, current)
	req.bytes(3, state.Private)
	req.clientCapabilities(5)
	resp, err := p.call(ctx, "ReadResource", req)
	if err != nil {
		return State{}, err
	}
	got, err := p.state(resp, s, 1, 2, 3)
	if err != nil {
		return State{}, err
	}
	return got, nil
}

// Destroy deletes a resource. With an error, a part of it still exists.
func (p *Provider) Destroy(ctx context.Context, typ string, state State) error {
	s, err := p.schemaOf(typ)
	if err != nil {
		return err
	}
	prior, err := s.encode(state.Value)
	if err != nil {
		return err
	}
	none, err := s.encode(cty.NilVal)
	if err != nil {
		return err
	}
	plan := &Plan{config: none, planned: none, private: state.Private}
	if p.schema.PlansDestroy {
		var req message
		req.text(1, typ)
		req.value(2, prior)
		req.value(3, none)
		req.value(4, none)
		req.bytes(5, state.Private)
		req.clientCapabilities(7)
		resp, err := p.call(ctx, "PlanResourceChange", req)
		if err != nil {
			return err
		}
		a, err := p.answer(resp, 1, 4, 3)
		if err != nil {
			return err
		}
		plan.private = a.private
	}
	_, err = p.apply(ctx, typ, s, prior, plan)
	return err
}

// Import finds a resource by the ID that the provider imports it by. It may not exist: only Read shows that.
func (p *Provider) Import(ctx context.Context, typ, id string) (State, error) {
	s, err := p.schemaOf(typ)
	if err != nil {
		return State{}, err
	}
	var req message
	req.text(1, typ)
	req.text(2, id)
	req.clientCapabilities(3)
	resp, err := p.call(ctx, "ImportResourceState", req)
	if err != nil {
		return State{}, err
	}
	var found []State
	var errs [][]byte
	err = each(resp, func(f field) error {
		switch f.number {
		case 1:
			state, ok, err := readImported(f.bytes, typ, s)
			if ok {
				found = append(found, state)
			}
			return err
		case 2:
			errs = append(errs, f.bytes)
		}
		return nil
	})
	if err = errors.Join(err, diagnosticError(errs)); err != nil {
		return State{}, err
	}
	if len(found) != 1 {
		return State{}, fmt.Errorf("the provider imported %d resources of type %s by the ID %q, want 1", len(found), typ, id)
	}
	return found[0], nil
}

// readImported reads an imported resource, unless it is of another type.
func readImported(b []byte, typ string, s *Schema) (State, bool, error) {
	got, value, private := "", dynamicValue{}, []byte(nil)
	err := each(b, func(f field) (err error) {
		switch f.number {
		case 1:
			got = f.text()
		case 2:
			value, err = readDynamicValue(f.bytes)
		case 3:
			private = f.bytes
		}
		return err
	})
	if err != nil || got != typ {
		return State{}, false, err
	}
	v, err := s.decode(value)
	return State{Value: v, Private: private}, true, err
}

// A SavedState is a State that outlives the process.
type SavedState struct {
	SchemaVersion int64           `json:"schemaVersion"`
	Value         json.RawMessage `json:"value"`
	Private       []byte          `json:"private,omitempty"`
}

// Save encodes a state, under the current version of the provider's schema.
func (p *Provider) Save(typ string, state State) (SavedState, error) {
	s, err := p.schemaOf(typ)
	if err != nil {
		return SavedState{}, err
	}
	b, err := ctyjson.Marshal(state.Value, s.Block.ImpliedType())
	if err != nil {
		return SavedState{}, err
	}
	return SavedState{SchemaVersion: s.Version, Value: b, Private: state.Private}, nil
}

// Upgrade decodes a saved state, possibly of another version of the provider.
func (p *Provider) Upgrade(ctx context.Context, typ string, saved SavedState) (State, error) {
	s, err := p.schemaOf(typ)
	if err != nil {
		return State{}, err
	}
	if saved.SchemaVersion > s.Version {
		return State{}, fmt.Errorf("the state was written by a newer version of the provider: it has version %d of the schema of %s, and this provider %d", saved.SchemaVersion, typ, s.Version)
	}
	var raw, req message
	raw.bytes(1, saved.Value)
	req.text(1, typ)
	req.integer(2, saved.SchemaVersion)
	req.bytes(3, raw)
	resp, err := p.call(ctx, "UpgradeResourceState", req)
	if err != nil {
		return State{}, err
	}
	got, err := p.state(resp, s, 1, 2, 0)
	got.Private = saved.Private
	return got, err
}

// JSON returns the attributes of the state.
func (s State) JSON() (map[string]any, error) {
	b, err := ctyjson.Marshal(s.Value, s.Value.Type())
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(b, &out)
}
