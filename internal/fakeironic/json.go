package fakeironic

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// ordered is a JSON object that keeps the order of its members.
type ordered []member

type member struct {
	key   string
	value any
}

// appendJSON writes a value. It exists because encoding/json is slow with members in a given order.
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
	case ordered:
		out = append(out, '{')
		for i, m := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendJSON(out, m.key), ':')
			out = appendJSON(out, m.value)
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
		panic(fmt.Sprintf("fakeironic: a value that is not JSON got in: %v", err))
	}
	return append(out, plain...)
}

// encode writes a value that is known to be plain JSON.
func encode(value any) []byte { return appendJSON(nil, value) }

// isPlain says that the text needs no escapes in JSON.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
