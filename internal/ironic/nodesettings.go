package ironic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
)

// Settings are attributes of a node, by name. Of driver_info, properties and extra they have single keys. Attributes and keys that they do
// not name stay as they are.
type Settings map[string]any

// keyed are the attributes whose keys are settings of their own.
var keyed = []string{"driver_info", "properties", "extra"}

// notAtCreation are the attributes that Ironic refuses when a node is created (reference/ironic.md#creating-a-node).
var notAtCreation = []string{"owner", "retired", "retired_reason"}

// Clone returns a copy that can be changed.
func (s Settings) Clone() Settings {
	s = maps.Clone(s)
	for _, attribute := range keyed {
		if keys := s.Keys(attribute); keys != nil {
			s[attribute] = maps.Clone(keys)
		}
	}
	return s
}

// SetKey sets a key of driver_info, properties or extra.
func (s Settings) SetKey(attribute, key string, value any) {
	keys := s.Keys(attribute)
	if keys == nil {
		keys = map[string]any{}
		s[attribute] = keys
	}
	keys[key] = value
}

// Keys returns the keys of driver_info, properties or extra; nil if there are none.
func (s Settings) Keys(attribute string) map[string]any {
	keys, _ := s[attribute].(map[string]any)
	return keys
}

// Text returns an attribute that is a text; "" if there is none.
func (s Settings) Text(attribute string) string {
	text, _ := s[attribute].(string)
	return text
}

// ByPath returns the settings by the paths that a Patch needs, such as "/owner" and "/extra/team".
func (s Settings) ByPath() map[string]any {
	values := map[string]any{}
	for attribute, value := range s {
		if !slices.Contains(keyed, attribute) {
			values["/"+attribute] = value
			continue
		}
		for key, value := range s.Keys(attribute) {
			values["/"+attribute+"/"+key] = value
		}
	}
	return values
}

// body returns the body of the request that creates a node. Empty values are left to Ironic.
func (s Settings) body() map[string]any {
	body := maps.Clone(s)
	maps.DeleteFunc(body, func(attribute string, value any) bool {
		return value == "" || slices.Contains(notAtCreation, attribute) || slices.Contains(keyed, attribute) && len(s.Keys(attribute)) == 0
	})
	return body
}

// Scalar returns a JSON value as text, unless it is an object, a list or null.
func Scalar(value any) (text string, ok bool) {
	switch v := value.(type) {
	case map[string]any, []any, nil:
		return "", false
	case json.Number:
		return document.Digits(v), true
	}
	return fmt.Sprint(value), true
}
