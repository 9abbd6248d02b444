package fakeironic

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

var uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$`)

// isUUID says whether Ironic takes the text for a UUID, with or without dashes.
func isUUID(text string) bool { return uuidPattern.MatchString(text) }

// newUUID makes a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// clone copies a JSON value so that nothing is shared.
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

// object returns value as a JSON object; anything else is an empty one.
func object(value any) map[string]any {
	if m, ok := value.(map[string]any); ok {
		return m
	}
	return map[string]any{}
}

// text returns value as a string; anything else, null above all, is "".
func text(value any) string {
	s, _ := value.(string)
	return s
}

// orNull is text, or null when there is none.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// strings of a JSON list; members that are not strings are left out.
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

// parseBool reads a boolean as oslo's strict bool_from_string does.
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

func contains(list []string, item string) bool {
	for _, member := range list {
		if member == item {
			return true
		}
	}
	return false
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// pyRepr writes a JSON value as Python would in an error text.
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
