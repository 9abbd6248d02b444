package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Decode reads one JSON value. As in Python, whole numbers keep all digits, and the others are float64: 1e3 is 1000.0. A number that Go
// would write otherwise than Python becomes json.Number.
func Decode(text []byte, into *any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("extra data after the JSON value")
	}
	*into = python(*into)
	return nil
}

// python gives the numbers of a decoded value the form in which Python writes them.
func python(value any) any {
	switch value := value.(type) {
	case json.Number:
		f, err := value.Float64()
		if err == nil && strings.ContainsAny(value.String(), ".eE") {
			value = json.Number(pyFloat(f))
		}
		if err == nil && string(appendJSON(nil, f)) == value.String() {
			return f
		}
		return value
	case map[string]any:
		for key, item := range value {
			value[key] = python(item)
		}
	case []any:
		for i, item := range value {
			value[i] = python(item)
		}
	}
	return value
}

// pyFloat writes a number as Python's repr writes a float.
func pyFloat(f float64) string {
	if size := math.Abs(f); size != 0 && (size < 1e-4 || size >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// Number returns a number of a decoded value, or of a fact of the fake.
func Number(value any) (number float64, is bool) {
	switch value := value.(type) {
	case float64:
		return value, true
	case json.Number:
		number, err := value.Float64()
		return number, err == nil
	}
	return 0, false
}

// Ordered is a JSON object that keeps the order of its members.
type Ordered []Member

// Member is a member of an ordered object. It is an alias, so that literals in other packages need no keys.
type Member = struct {
	Key   string
	Value any
}

// appendJSON appends the JSON of a value. encoding/json is slow with members in a given order.
func appendJSON(out []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(out, "null"...)
	case string:
		if isPlain(v) {
			return append(append(append(out, '"'), v...), '"')
		}
	case bool:
		return strconv.AppendBool(out, v)
	case json.RawMessage:
		return append(out, v...)
	case Ordered:
		out = append(out, '{')
		for i, m := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendJSON(out, m.Key), ':')
			out = appendJSON(out, m.Value)
		}
		return append(out, '}')
	case []any:
		out = append(out, '[')
		for i, item := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendJSON(out, item)
		}
		return append(out, ']')
	}
	plain, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("fakeironic: encode %T: %v", value, err))
	}
	return append(out, plain...)
}

// Encode returns the JSON of a value. It panics if the value cannot be encoded.
func Encode(value any) []byte { return appendJSON(nil, value) }

// isPlain reports whether the text needs no escapes in JSON.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
