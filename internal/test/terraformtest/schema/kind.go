package schema

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
)

// Kind is a type of resource or data source, or a provider block.
type Kind struct {
	Type       cty.Type
	Attributes []*tfprotov6.SchemaAttribute
	Version    int64

	Name   string // without "data."
	IsData bool
	spec   hcldec.Spec
	hidden bool // there are sensitive attributes
}

// DataPrefix begins the addresses of data sources.
const DataPrefix = "data."

func kindOf(name string, schema *tfprotov6.Schema) *Kind {
	if schema == nil {
		schema = &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{}}
	}
	if len(schema.Block.BlockTypes) > 0 {
		panic(name + " has nested blocks, which this package does not support")
	}
	attributes := schema.Block.Attributes
	spec := hcldec.ObjectSpec{}
	for _, a := range attributes {
		spec[a.Name] = &hcldec.AttrSpec{Name: a.Name, Type: attributeType(a, true), Required: a.Required}
	}
	return &Kind{
		Type: objectType(attributes, false), Attributes: attributes, Version: schema.Version, Name: name, spec: spec,
		hidden: HasSensitive(attributes),
	}
}

// attributeType returns the type of an attribute: of its values, or of the expressions that are converted to it.
func attributeType(a *tfprotov6.SchemaAttribute, ofExpressions bool) cty.Type {
	if a.NestedType == nil {
		return terraformType(a.Type)
	}
	element := objectType(a.NestedType.Attributes, ofExpressions)
	switch a.NestedType.Nesting { //nolint:exhaustive // a single object follows
	case tfprotov6.SchemaObjectNestingModeList:
		return cty.List(element)
	case tfprotov6.SchemaObjectNestingModeSet:
		return cty.Set(element)
	case tfprotov6.SchemaObjectNestingModeMap:
		return cty.Map(element)
	}
	return element
}

// objectType returns the type of an object. Expressions need not have its optional attributes.
func objectType(attributes []*tfprotov6.SchemaAttribute, ofExpressions bool) cty.Type {
	types, optional := map[string]cty.Type{}, []string{}
	for _, a := range attributes {
		types[a.Name] = attributeType(a, ofExpressions)
		if ofExpressions && !a.Required {
			optional = append(optional, a.Name)
		}
	}
	return cty.ObjectWithOptionalAttrs(types, optional)
}

func terraformType(of tftypes.Type) cty.Type {
	text, err := of.MarshalJSON() //nolint:staticcheck // Terraform's own encoding of types
	if err != nil {
		panic(err)
	}
	made, err := ctyjson.UnmarshalType(text)
	if err != nil {
		panic(err)
	}
	return made
}

// HasSensitive reports whether an attribute is sensitive, also within others.
func HasSensitive(attributes []*tfprotov6.SchemaAttribute) bool {
	for _, a := range attributes {
		if a.Sensitive || a.NestedType != nil && HasSensitive(a.NestedType.Attributes) {
			return true
		}
	}
	return false
}

// Null returns the null value of the kind, which stands for an object that does not exist.
func (k *Kind) Null() cty.Value { return cty.NullVal(k.Type) }

// Encode encodes a value for the provider.
func (k *Kind) Encode(value cty.Value) *tfprotov6.DynamicValue {
	text, err := ctymsgpack.Marshal(value, k.Type)
	if err != nil {
		panic(fmt.Sprintf("encode %s: %v", k.Name, err))
	}
	return &tfprotov6.DynamicValue{MsgPack: text}
}

// Decode decodes what the provider has encoded. Nothing is null.
func (k *Kind) Decode(value *tfprotov6.DynamicValue) (cty.Value, error) {
	switch {
	case value == nil:
		return k.Null(), nil
	case len(value.JSON) > 0:
		return ctyjson.Unmarshal(value.JSON, k.Type)
	}
	return ctymsgpack.Unmarshal(value.MsgPack, k.Type)
}

// References returns the references of a block.
func (k *Kind) References(body hcl.Body) []hcl.Traversal { return hcldec.Variables(body, k.spec) }

// DecodeBody evaluates a body.
func (k *Kind) DecodeBody(body hcl.Body, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	return hcldec.Decode(body, k.spec, ctx)
}

type mark string

// Sensitive marks a value that must not be shown; Ephemeral one that must not be stored.
const (
	Sensitive mark = "sensitive"
	Ephemeral mark = "ephemeral"
)

// Marked marks the values of sensitive attributes.
func (k *Kind) Marked(value cty.Value) cty.Value {
	if !k.hidden {
		return value
	}
	return markAttributes(k.Attributes, value)
}

func markAttributes(attributes []*tfprotov6.SchemaAttribute, value cty.Value) cty.Value {
	if value.IsMarked() || value.IsNull() || !value.IsKnown() {
		return value
	}
	values := value.AsValueMap()
	for _, a := range attributes {
		switch {
		case a.Sensitive && !values[a.Name].IsNull():
			values[a.Name] = values[a.Name].Mark(Sensitive)
		case a.NestedType != nil && a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle:
			values[a.Name] = markAttributes(a.NestedType.Attributes, values[a.Name])
		}
	}
	return cty.ObjectVal(values)
}
