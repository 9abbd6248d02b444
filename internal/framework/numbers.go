package framework

import (
	"bytes"
	"strconv"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

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

// copyValue copies the decoder's next value, with its numbers as texts.
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
