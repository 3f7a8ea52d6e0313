package plugin

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Nesting of blocks and of attributes that have attributes.
type Nesting int64

// Nestings, by their numbers in the protocol. Group is of blocks only.
const (
	NestingSingle Nesting = 1
	NestingList   Nesting = 2
	NestingSet    Nesting = 3
	NestingMap    Nesting = 4
	NestingGroup  Nesting = 5
)

// A Schema of a provider's configuration, or of a resource type.
type Schema struct {
	Version int64
	Block   *Block
}

// A Block has attributes and blocks.
type Block struct {
	Attributes map[string]*Attribute
	Blocks     map[string]*NestedBlock
}

// An Attribute has a type, or attributes of its own.
type Attribute struct {
	Type   cty.Type
	Nested *Block
	// Nesting of Nested.
	Nesting                                            Nesting
	Required, Optional, Computed, Sensitive, WriteOnly bool
}

// A NestedBlock is a block in a block.
type NestedBlock struct {
	*Block
	Nesting  Nesting
	Min, Max int64
}

// ImpliedType is the type of a block's values.
func (b *Block) ImpliedType() cty.Type {
	types := make(map[string]cty.Type, len(b.Attributes)+len(b.Blocks))
	for name, a := range b.Attributes {
		types[name] = a.impliedType()
	}
	for name, n := range b.Blocks {
		types[name] = nestedType(n.ImpliedType(), n.Nesting, n.ImpliedType().HasDynamicTypes())
	}
	return cty.Object(types)
}

func (a *Attribute) impliedType() cty.Type {
	if a.Nested == nil {
		return a.Type
	}
	return nestedType(a.Nested.ImpliedType(), a.Nesting, false)
}

// nestedType of elements. The elements of a list or map of blocks may differ in type if they
// have attributes of any type.
func nestedType(element cty.Type, n Nesting, dynamic bool) cty.Type {
	switch n {
	case NestingList:
		if dynamic {
			return cty.DynamicPseudoType
		}
		return cty.List(element)
	case NestingSet:
		return cty.Set(element)
	case NestingMap:
		if dynamic {
			return cty.DynamicPseudoType
		}
		return cty.Map(element)
	default:
		return element
	}
}

func readSchema(b []byte) (*Schema, error) {
	s := &Schema{Block: newBlock()}
	return s, each(b, func(f field) error {
		switch f.number {
		case 1:
			s.Version = f.integer()
		case 2:
			return s.Block.read(f.bytes)
		}
		return nil
	})
}

func newBlock() *Block {
	return &Block{Attributes: map[string]*Attribute{}, Blocks: map[string]*NestedBlock{}}
}

// read a Schema.Block.
func (b *Block) read(data []byte) error {
	return each(data, func(f field) error {
		switch f.number {
		case 2:
			return b.readAttribute(f.bytes)
		case 3:
			return b.readBlock(f.bytes)
		}
		return nil
	})
}

// readAttribute reads a Schema.Attribute. Field 10 is write_only in version 5 and nested_type in
// version 6, field 11 is a text in version 5 and write_only in version 6.
func (b *Block) readAttribute(data []byte) error {
	name, a := "", &Attribute{}
	err := each(data, func(f field) error {
		switch f.number {
		case 1:
			name = f.text()
		case 2:
			t, err := ctyjson.UnmarshalType(f.bytes)
			a.Type = t
			return err
		case 4:
			a.Required = f.isTrue()
		case 5:
			a.Optional = f.isTrue()
		case 6:
			a.Computed = f.isTrue()
		case 7:
			a.Sensitive = f.isTrue()
		case 10:
			if f.isBytes {
				return a.readNested(f.bytes)
			}
			a.WriteOnly = f.isTrue()
		case 11:
			a.WriteOnly = a.WriteOnly || f.isTrue()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("attribute %q of the schema: %w", name, err)
	}
	b.Attributes[name] = a
	return nil
}

// readNested reads a Schema.Object.
func (a *Attribute) readNested(data []byte) error {
	a.Nested = newBlock()
	return each(data, func(f field) error {
		switch f.number {
		case 1:
			return a.Nested.readAttribute(f.bytes)
		case 3:
			a.Nesting = Nesting(f.integer())
		}
		return nil
	})
}

// readBlock reads a Schema.NestedBlock.
func (b *Block) readBlock(data []byte) error {
	name, n := "", &NestedBlock{Block: newBlock()}
	err := each(data, func(f field) error {
		switch f.number {
		case 1:
			name = f.text()
		case 2:
			return n.read(f.bytes)
		case 3:
			n.Nesting = Nesting(f.integer())
		case 4:
			n.Min = f.integer()
		case 5:
			n.Max = f.integer()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("block %q of the schema: %w", name, err)
	}
	b.Blocks[name] = n
	return nil
}

// A ProviderSchema is all that a provider has.
type ProviderSchema struct {
	Provider  *Schema
	Resources map[string]*Schema
	// PlansDestroy reports whether the provider wants to plan a deletion.
	PlansDestroy bool
}

func readProviderSchema(b []byte) (*ProviderSchema, error) {
	s := &ProviderSchema{Provider: &Schema{Block: newBlock()}, Resources: map[string]*Schema{}}
	var diagnostics [][]byte
	err := each(b, func(f field) (err error) {
		switch f.number {
		case 1:
			s.Provider, err = readSchema(f.bytes)
		case 2:
			err = s.readResource(f.bytes)
		case 4:
			diagnostics = append(diagnostics, f.bytes)
		case 6:
			err = each(f.bytes, func(f field) error {
				s.PlansDestroy = s.PlansDestroy || f.number == 1 && f.isTrue()
				return nil
			})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, diagnosticError(diagnostics)
}

// readResource reads an entry of the map of resource schemas.
func (s *ProviderSchema) readResource(entry []byte) error {
	name, schema := "", []byte(nil)
	err := each(entry, func(f field) error {
		switch f.number {
		case 1:
			name = f.text()
		case 2:
			schema = f.bytes
		}
		return nil
	})
	if err != nil {
		return err
	}
	r, err := readSchema(schema)
	if err != nil {
		return fmt.Errorf("resource type %q: %w", name, err)
	}
	s.Resources[name] = r
	return nil
}
