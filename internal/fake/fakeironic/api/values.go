package api

import (
	"crypto/rand"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$`)

// IsUUID reports whether Ironic accepts the text as a UUID, with or without dashes.
func IsUUID(text string) bool { return uuidPattern.MatchString(text) }

// NewUUID returns a random UUID.
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// Clone returns a deep copy of a JSON value.
func Clone(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = Clone(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Clone(item)
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

// Object returns value as a JSON object, or an empty object if it is something else.
func Object(value any) map[string]any {
	if m, ok := value.(map[string]any); ok {
		return m
	}
	return map[string]any{}
}

// Text returns value as a string, or "" if it is something else, such as null.
func Text(value any) string {
	s, _ := value.(string)
	return s
}

// OrNull returns s, or null if s is empty.
func OrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Texts returns the strings in a JSON list and skips other members.
func Texts(value any) []string {
	list, _ := value.([]any)
	out := make([]string, 0, len(list))
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// ParseBool parses a boolean as oslo's strict bool_from_string does.
func ParseBool(value any) (result, valid bool) {
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

// SortedKeys returns the keys of a map in alphabetical order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// StepName returns the interface and the name of a step.
func StepName(step map[string]any) (kind, name string) {
	return Text(step["interface"]), Text(step["step"])
}
