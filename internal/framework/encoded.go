package framework

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Fingerprints computes fingerprints of the configurations of one resource type.
type Fingerprints struct {
	blocks bool // the schema has blocks, which are not supported
	root   *part
}

// part describes a part of a configuration. nil means that its whole value counts.
type part struct {
	writeOnly  bool             // only its presence, and the keys of a map, count
	attributes map[string]*part // the attributes of an object
	each       *part            // every element of a collection
}

// NewFingerprints returns the Fingerprints for a schema.
func NewFingerprints(schema *tfprotov6.Schema) Fingerprints {
	if schema == nil || schema.Block == nil {
		return Fingerprints{blocks: true}
	}
	return Fingerprints{blocks: len(schema.Block.BlockTypes) > 0, root: partOf(schema.Block.Attributes)}
}

// partOf describes an object; nil if it has no write-only attributes.
func partOf(attributes []*tfprotov6.SchemaAttribute) *part {
	found := map[string]*part{}
	for _, attribute := range attributes {
		nested := attribute.NestedType
		if attribute.WriteOnly {
			found[attribute.Name] = &part{writeOnly: true}
		} else if nested == nil {
			continue
		} else if inside := partOf(nested.Attributes); inside != nil && nested.Nesting != tfprotov6.SchemaObjectNestingModeSingle {
			found[attribute.Name] = &part{each: inside}
		} else if inside != nil {
			found[attribute.Name] = inside
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &part{attributes: found}
}

// Of returns the fingerprint of a configuration in msgpack; "" if it cannot be computed. It depends on every value, but only on
// the presence of a write-only value, because private state must not help to guess secrets.
func (f Fingerprints) Of(config []byte) string {
	if f.blocks || len(config) == 0 {
		return ""
	}
	sum := sha256.New()
	if err := f.root.write(sum, msgpack.NewDecoder(bytes.NewReader(config))); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// write adds the decoder's next value to a hash.
func (p *part) write(sum hash.Hash, decoder *msgpack.Decoder) error {
	code, err := decoder.PeekCode()
	isMap := err == nil && (msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32)
	isList := err == nil && (msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32)
	switch {
	case err != nil:
		return err
	case p != nil && isMap:
		return p.writeMap(sum, decoder)
	case p != nil && isList && !p.writeOnly:
		return p.writeList(sum, decoder)
	case p == nil || code == msgpcode.Nil || msgpcode.IsExt(code): // an unknown value is an extension
		raw, err := decoder.DecodeRaw()
		_, _ = sum.Write(raw) // a hash never returns an error
		return err
	}
	_, _ = sum.Write([]byte("set"))
	return decoder.Skip()
}

func (p *part) writeMap(sum hash.Hash, decoder *msgpack.Decoder) error {
	n, err := decoder.DecodeMapLen()
	_, _ = fmt.Fprintf(sum, "map %d", n)
	for i := 0; i < n && err == nil; i++ {
		var key string
		if key, err = decoder.DecodeString(); err != nil {
			break
		}
		_, _ = fmt.Fprintf(sum, "%q", key)
		err = p.below(key).write(sum, decoder)
	}
	return err
}

func (p *part) writeList(sum hash.Hash, decoder *msgpack.Decoder) error {
	n, err := decoder.DecodeArrayLen()
	_, _ = fmt.Fprintf(sum, "list %d", n)
	for i := 0; i < n && err == nil; i++ {
		err = p.each.write(sum, decoder)
	}
	return err
}

// below returns the part at a key of an object or a map.
func (p *part) below(key string) *part {
	switch {
	case p.writeOnly:
		return p
	case p.each != nil:
		return p.each
	}
	return p.attributes[key]
}

// WithTextNumbers returns a state in msgpack in which every number is a decimal text, which Terraform reads as the same number.
// Terraform from 1.11 compares a refreshed state with the one in the state file by the representation of its numbers, too: those
// of texts have the precision of those in the file (reference/terraform.md#refresh-only-plans). It returns the given state if that
// has no numbers or cannot be read.
func WithTextNumbers(state *tfprotov6.DynamicValue) *tfprotov6.DynamicValue {
	if state == nil {
		return nil
	}
	var text bytes.Buffer
	from, to := msgpack.NewDecoder(bytes.NewReader(state.MsgPack)), msgpack.NewEncoder(&text)
	if err := copyValue(from, to, &text); err != nil || bytes.Equal(text.Bytes(), state.MsgPack) {
		return state
	}
	return &tfprotov6.DynamicValue{MsgPack: text.Bytes()}
}

func copyValue(from *msgpack.Decoder, to *msgpack.Encoder, raw *bytes.Buffer) error {
	code, err := from.PeekCode()
	if err != nil {
		return err
	}
	switch {
	case msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32:
		n, err := from.DecodeMapLen()
		if err == nil {
			err = to.EncodeMapLen(n)
		}
		return copyValues(2*n, err, from, to, raw) // keys are strings
	case msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32:
		n, err := from.DecodeArrayLen()
		if err == nil {
			err = to.EncodeArrayLen(n)
		}
		return copyValues(n, err, from, to, raw)
	case code == msgpcode.Float || code == msgpcode.Double:
		number, err := from.DecodeFloat64()
		if err != nil {
			return err
		}
		return to.EncodeString(strconv.FormatFloat(number, 'f', -1, 64))
	case code == msgpcode.Uint64:
		number, err := from.DecodeUint64()
		if err != nil {
			return err
		}
		return to.EncodeString(strconv.FormatUint(number, 10))
	case msgpcode.IsFixedNum(code) || code >= msgpcode.Uint8 && code <= msgpcode.Int64:
		number, err := from.DecodeInt64()
		if err != nil {
			return err
		}
		return to.EncodeString(strconv.FormatInt(number, 10))
	}
	value, err := from.DecodeRaw()
	raw.Write(value)
	return err
}

// copyValues copies the next n values, unless there is an error already.
func copyValues(n int, err error, from *msgpack.Decoder, to *msgpack.Encoder, raw *bytes.Buffer) error {
	for i := 0; i < n && err == nil; i++ {
		err = copyValue(from, to, raw)
	}
	return err
}
