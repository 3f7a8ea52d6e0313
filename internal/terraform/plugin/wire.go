package plugin

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// A message of the protocol, encoded.
type message []byte

func (m *message) bytes(n protowire.Number, b []byte) {
	if len(b) == 0 {
		return
	}
	*m = protowire.AppendBytes(protowire.AppendTag(*m, n, protowire.BytesType), b)
}

func (m *message) text(n protowire.Number, s string) { m.bytes(n, []byte(s)) }

func (m *message) integer(n protowire.Number, i int64) {
	if i == 0 {
		return
	}
	*m = protowire.AppendVarint(protowire.AppendTag(*m, n, protowire.VarintType), uint64(i)) //nolint:gosec // int64 of protobuf is its two's complement.
}

// value is a DynamicValue in MessagePack.
func (m *message) value(n protowire.Number, msgpack []byte) {
	var v message
	v.bytes(1, msgpack)
	m.bytes(n, v)
}

// clientCapabilities has writeOnlyAllowed.
func (m *message) clientCapabilities(n protowire.Number) {
	var c message
	c.integer(2, 1)
	m.bytes(n, c)
}

// A field of a message that was received.
type field struct {
	number protowire.Number
	// isBytes distinguishes text, bytes and messages from numbers.
	isBytes bool
	bytes   []byte
	varint  uint64
}

func (f field) text() string   { return string(f.bytes) }
func (f field) isTrue() bool   { return !f.isBytes && f.varint != 0 }
func (f field) integer() int64 { return int64(f.varint) } //nolint:gosec // int64 of protobuf is its two's complement.

// each calls f with the fields of a message. Fields of other wire types than numbers and bytes
// are in no message of the protocol.
func each(b []byte, f func(field) error) error {
	for len(b) > 0 {
		number, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("invalid message: %w", protowire.ParseError(n))
		}
		b = b[n:]
		got := field{number: number}
		switch typ {
		case protowire.VarintType:
			got.varint, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			got.isBytes = true
			got.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, typ, b)
		}
		if n < 0 {
			return fmt.Errorf("invalid message: field %d: %w", number, protowire.ParseError(n))
		}
		b = b[n:]
		if err := f(got); err != nil {
			return err
		}
	}
	return nil
}

// dynamicValue is the field of a DynamicValue: MessagePack, or JSON.
type dynamicValue struct{ msgpack, json []byte }

func readDynamicValue(b []byte) (dynamicValue, error) {
	var v dynamicValue
	return v, each(b, func(f field) error {
		switch f.number {
		case 1:
			v.msgpack = f.bytes
		case 2:
			v.json = f.bytes
		}
		return nil
	})
}

// rawCodec lets gRPC send and receive messages as they are.
type rawCodec struct{}

// Name of the codec, as the server knows it.
func (rawCodec) Name() string { return "proto" }

// Marshal a message.
func (rawCodec) Marshal(v any) ([]byte, error) {
	m, ok := v.(*message)
	if !ok {
		return nil, fmt.Errorf("%T is not a message", v)
	}
	return *m, nil
}

// Unmarshal into a message. The buffer belongs to gRPC.
func (rawCodec) Unmarshal(b []byte, v any) error {
	m, ok := v.(*message)
	if !ok {
		return fmt.Errorf("%T is not a message", v)
	}
	*m = append(message(nil), b...)
	return nil
}
