package fakeironic

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// kind is the set of JSON types that a member may have.
type kind struct {
	types     []string // in the order of the error text
	maxLength int
}

var (
	stringKind = kind{types: []string{"string"}}
	textKind   = kind{types: []string{"string", "null"}}
	objectKind = kind{types: []string{"object", "null"}}
	boolKind   = kind{types: []string{"string", "boolean", "null"}}
	listKind   = kind{types: []string{"array", "null"}}
	classKind  = kind{types: []string{"string", "null"}, maxLength: 80}
)

// schema checks a body; the members of a body that it does not have are refused.
type schema struct {
	name     string // in the error text: "Schema error for <name>: "
	members  map[string]kind
	required []string
}

// check returns the first thing wrong with the body.
func (s schema) check(body map[string]any) error {
	for _, key := range sortedKeys(body) {
		k, known := s.members[key]
		if !known {
			return s.fault("Additional properties are not allowed (%s was unexpected)", pyRepr(key))
		}
		if err := s.checkKind(k, body[key]); err != nil {
			return err
		}
	}
	for _, key := range s.required {
		if _, given := body[key]; !given {
			return s.fault("%s is a required property", pyRepr(key))
		}
	}
	return nil
}

func (s schema) checkKind(k kind, value any) error {
	if !contains(k.types, jsonType(value)) {
		quoted := make([]string, len(k.types))
		for i, t := range k.types {
			quoted[i] = pyRepr(t)
		}
		return s.fault("%s is not of type %s", pyRepr(value), strings.Join(quoted, ", "))
	}
	if k.maxLength > 0 && utf8.RuneCountInString(text(value)) > k.maxLength {
		return s.fault("%s is too long", pyRepr(value))
	}
	return nil
}

// checkTexts refuses a list that has something else than strings in it; name is that of the body.
func checkTexts(name string, value any) error {
	list, _ := value.([]any)
	for _, item := range list {
		if err := (schema{name: name}).checkKind(stringKind, item); err != nil {
			return err
		}
	}
	return nil
}

func (s schema) fault(format string, args ...any) error {
	subject := ""
	if s.name != "" {
		subject = " for " + s.name
	}
	return fault(http.StatusBadRequest, "Schema error%s: %s", subject, fmt.Sprintf(format, args...))
}

func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return ""
}
