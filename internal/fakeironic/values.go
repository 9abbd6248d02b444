package fakeironic

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$`)

// isUUID reports whether Ironic accepts the text as a UUID, with or without dashes.
func isUUID(text string) bool { return uuidPattern.MatchString(text) }

// newUUID returns a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// clone returns a deep copy of a JSON value.
func clone(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = clone(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = clone(item)
		}
		return out
	case []string:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = item
		}
		return out
	}
	return value
}

// object returns value as a JSON object, or an empty object if it is something else.
func object(value any) map[string]any {
	if m, ok := value.(map[string]any); ok {
		return m
	}
	return map[string]any{}
}

// text returns value as a string, or "" if it is something else, such as null.
func text(value any) string {
	s, _ := value.(string)
	return s
}

// orNull returns s, or null if s is empty.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// texts returns the strings in a JSON list and skips other members.
func texts(value any) []string {
	list, _ := value.([]any)
	out := make([]string, 0, len(list))
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// parseBool parses a boolean as oslo's strict bool_from_string does.
func parseBool(value any) (result, valid bool) {
	switch v := value.(type) {
	case bool:
		return v, true
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "1", "t", "true", "on", "y", "yes":
			return true, true
		case "0", "f", "false", "off", "n", "no":
			return false, true
		}
	}
	return false, false
}

// sortedKeys returns the keys of a map in alphabetical order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// pyRepr formats a JSON value as Python's repr does.
func pyRepr(value any) string {
	switch v := value.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return "'" + v + "'"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = pyRepr(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var items []string
		for _, key := range sortedKeys(v) {
			items = append(items, pyRepr(key)+": "+pyRepr(v[key]))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return fmt.Sprint(value)
}

// pyText formats a JSON value as Python's str does.
func pyText(value any) string {
	if s, isText := value.(string); isText {
		return s
	}
	return pyRepr(value)
}

// pyBool formats a boolean query parameter as Python's repr does.
func pyBool(value string) string {
	set, _ := parseBool(value)
	return pyRepr(set)
}

// ordered is a JSON object that keeps the order of its members.
type ordered []member

// member is a member of an ordered object. It is an alias, so that literals in other packages need no keys.
type member = struct {
	key   string
	value any
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
		panic(fmt.Sprintf("fakeironic: encode %T: %v", value, err))
	}
	return append(out, plain...)
}

// encode returns the JSON of a value. It panics if the value cannot be encoded.
func encode(value any) []byte { return appendJSON(nil, value) }

// isPlain reports whether the text needs no escapes in JSON.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
