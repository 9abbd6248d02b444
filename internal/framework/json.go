package framework

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// JSONType is the type of attributes that are JSON in text. Documents that differ only in spelling are equal. Unlike that of
// terraform-plugin-framework-jsontypes, it never shows a text that it refuses: most of these attributes may contain passwords.
type JSONType struct{ basetypes.StringType }

// JSON is a value of JSONType.
type JSON struct{ basetypes.StringValue }

// JSONValue returns a known value.
func JSONValue(text string) JSON { return JSON{types.StringValue(text)} }

// JSONNull returns a null value.
func JSONNull() JSON { return JSON{types.StringNull()} }

// JSONUnknown returns an unknown value.
func JSONUnknown() JSON { return JSON{types.StringUnknown()} }

// String names the type.
func (JSONType) String() string { return "framework.JSONType" }

// ValueType returns a value of the type.
func (JSONType) ValueType(context.Context) attr.Value { return JSON{} }

// Equal reports whether another type is the same.
func (JSONType) Equal(other attr.Type) bool {
	_, same := other.(JSONType)
	return same
}

// ValueFromString makes a text a value of the type.
func (JSONType) ValueFromString(_ context.Context, text basetypes.StringValue) (basetypes.StringValuable, diag.Diagnostics) {
	return JSON{text}, nil
}

// ValueFromTerraform makes a value of Terraform one of the type.
func (t JSONType) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	value, err := t.StringType.ValueFromTerraform(ctx, in)
	text, _ := value.(types.String) // the zero value beside an error
	return JSON{text}, err
}

// Type returns JSONType.
func (JSON) Type(context.Context) attr.Type { return JSONType{} }

// Equal reports whether another value has the same spelling.
func (v JSON) Equal(other attr.Value) bool {
	o, same := other.(JSON)
	return same && v.StringValue.Equal(o.StringValue)
}

// Spelling returns the document in one spelling, with the digits of its numbers; "" if it is not JSON.
func (v JSON) Spelling() string { return ironic.Spelling(json.RawMessage(v.ValueString())) }

// StringSemanticEquals reports whether another value has the same meaning.
func (v JSON) StringSemanticEquals(_ context.Context, other basetypes.StringValuable) (bool, diag.Diagnostics) {
	o, same := other.(JSON)
	return same && ironic.SameJSON(json.RawMessage(v.ValueString()), json.RawMessage(o.ValueString())), nil
}

// ValidateAttribute adds an error for a text that is not JSON. It says where, and shows nothing of the text.
func (v JSON) ValidateAttribute(_ context.Context, req xattr.ValidateAttributeRequest, resp *xattr.ValidateAttributeResponse) {
	if v.IsNull() || v.IsUnknown() {
		return
	}
	if at := NotJSON(v.ValueString()); at != "" {
		resp.Diagnostics.AddAttributeError(req.Path, "Not JSON", fmt.Sprintf("The value is not JSON: %s. Write it with jsonencode({ … }). "+
			"If it is YAML, write jsonencode(yamldecode(…)).", at))
	}
}

// KeepSpelling plans that a document stays as the state has it, if the configuration only spells it otherwise.
func KeepSpelling() []planmodifier.String { return []planmodifier.String{spelling{}} }

type spelling struct{}

func (spelling) Description(context.Context) string { return "" }

func (spelling) MarkdownDescription(context.Context) string { return "" }

func (spelling) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if ironic.SameJSON(json.RawMessage(req.StateValue.ValueString()), json.RawMessage(req.ConfigValue.ValueString())) {
		resp.PlanValue = req.StateValue
	}
}

// NotJSON says where a text is not JSON, and shows nothing of it; "" if it is JSON.
func NotJSON(text string) string {
	var document any
	err := json.Unmarshal([]byte(text), &document)
	wrong, is := errors.AsType[*json.SyntaxError](err)
	switch {
	case !is: // no error, or a number that float64 cannot hold
		return ""
	case strings.TrimSpace(text) == "":
		return "it is empty"
	}
	before := text[:max(0, min(int(wrong.Offset), len(text))-1)]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	place := fmt.Sprintf("line %d, column %d", strings.Count(before, "\n")+1, len([]rune(line))+1)
	if int(wrong.Offset) >= len(text) && strings.HasPrefix(wrong.Error(), "unexpected end") {
		return "it ends too early, at " + place
	}
	return "the fault is at " + place
}
