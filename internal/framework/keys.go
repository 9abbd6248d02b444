package framework

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Keys are the keys of an attribute that looks like an object and is a map of strings. Terraform drops unknown keys of an object without a
// word, so that a typing error removes a rule; of a map it drops none (reference/terraform.md#unknown-keys-of-an-object).
type Keys map[string]Key

// Key is one of them.
type Key struct {
	Description string // in Markdown
	Required    bool
	Validators  []validator.String
}

// Markdown returns a description of the attribute with its keys.
func (k Keys) Markdown(description string) string {
	var text strings.Builder
	text.WriteString(description + " An unknown key is an error.\n")
	for _, key := range slices.Sorted(maps.Keys(k)) {
		required := ""
		if k[key].Required {
			required = " (required)"
		}
		fmt.Fprintf(&text, "\n  - `%s`%s: %s", key, required, k[key].Description)
	}
	return text.String()
}

// Description returns the rule.
func (k Keys) Description(context.Context) string {
	return "keys must be among " + strings.Join(slices.Sorted(maps.Keys(k)), ", ")
}

// MarkdownDescription returns the rule.
func (k Keys) MarkdownDescription(ctx context.Context) string { return k.Description(ctx) }

// ValidateMap adds an error for each unknown key, for each required key that is missing, and for each value that a key does not accept.
func (k Keys) ValidateMap(ctx context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	if !IsSet(req.ConfigValue) {
		return
	}
	elements := req.ConfigValue.Elements()
	for _, key := range slices.Sorted(maps.Keys(elements)) {
		known, exists := k[key]
		if !exists {
			resp.Diagnostics.AddAttributeError(req.Path.AtMapKey(key), "Unknown key", fmt.Sprintf("%s has no key %q. It has %s.", req.Path, key, strings.Join(slices.Sorted(maps.Keys(k)), ", ")))
			continue
		}
		value, _ := elements[key].(types.String)
		for _, v := range known.Validators {
			one := &validator.StringResponse{}
			v.ValidateString(ctx, validator.StringRequest{Path: req.Path.AtMapKey(key), PathExpression: req.PathExpression.AtMapKey(key), Config: req.Config, ConfigValue: value}, one)
			resp.Diagnostics.Append(one.Diagnostics...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k)) {
		if value, exists := elements[key]; k[key].Required && (!exists || value.IsNull()) {
			resp.Diagnostics.AddAttributeError(req.Path, "Missing key", fmt.Sprintf("%s needs %s.", req.Path, key))
		}
	}
}

// KeyOf returns the value of a key; null if the map does not have it.
func KeyOf(m types.Map, key string) types.String {
	value, ok := m.Elements()[key].(types.String)
	if !ok {
		return types.StringNull()
	}
	return value
}
