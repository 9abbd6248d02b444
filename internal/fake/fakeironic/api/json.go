package api

import (
	"encoding/json"
	"fmt"
	"strconv"
)

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
