package api

import (
	"fmt"
	"strconv"
	"strings"
)

// PyRepr formats a JSON value as Python's repr does.
func PyRepr(value any) string {
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
			items[i] = PyRepr(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var items []string
		for _, key := range SortedKeys(v) {
			items = append(items, PyRepr(key)+": "+PyRepr(v[key]))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return fmt.Sprint(value)
}

// PyText formats a JSON value as Python's str does.
func PyText(value any) string {
	if s, isText := value.(string); isText {
		return s
	}
	return PyRepr(value)
}

// PyBool formats a boolean query parameter as Python's repr does.
func PyBool(value string) string {
	set, _ := ParseBool(value)
	return PyRepr(set)
}
