package simulate_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// kind is a type of resource, or the provider block.
type kind struct {
	kind       cty.Type
	attributes []*tfprotov6.SchemaAttribute
	version    int64
}

// blockName is the name of the provider block in schemas.
const blockName = ""

// dataPrefix is before the names of data sources.
const dataPrefix = "data."

// schemas are the kinds by name. They are the same for all servers.
var schemas = sync.OnceValue(func() map[string]kind {
	resp, err := provider.NewServer("test").GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		panic(err)
	}
	all := map[string]kind{}
	for name, schema := range resp.ResourceSchemas {
		all[name] = kindOf(schema)
	}
	for name, schema := range resp.DataSourceSchemas {
		all[dataPrefix+name] = kindOf(schema)
	}
	for name, schema := range resp.ListResourceSchemas {
		all[listPrefix+name] = kindOf(schema)
	}
	for name, schema := range resp.ActionSchemas {
		all[actionPrefix+name] = kindOf(schema.Schema)
	}
	all[blockName] = kindOf(resp.Provider)
	return all
})

func kindOf(schema *tfprotov6.Schema) kind {
	return kind{kind: terraformType(schema.ValueType()), attributes: schema.Block.Attributes, version: schema.Version}
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

// object are the settings of a resource or of a nested object: strings, numbers, booleans, lists, objects and references.
type object = map[string]any

// reference stands for an attribute of another resource.
type reference struct{ address, attribute string }

// pick stands for a part of an attribute of another resource or data source: the element of a list, or an attribute of an element of a map.
type pick struct {
	from reference
	path []any // numbers and names
}

// of returns the part of a value; null if there is none.
func (p pick) of(kind cty.Type, value cty.Value) cty.Value {
	for _, at := range p.path {
		switch {
		case !value.IsKnown():
			return cty.UnknownVal(kind)
		case value.IsNull():
			return cty.NullVal(kind)
		}
		key, isName := at.(string)
		n, _ := at.(int)
		switch {
		case isName && value.Type().IsObjectType():
			value = value.GetAttr(key)
		case isName && value.HasIndex(cty.StringVal(key)).True():
			value = value.Index(cty.StringVal(key))
		case !isName && value.LengthInt() > n:
			value = value.AsValueSlice()[n]
		default:
			return cty.NullVal(kind)
		}
	}
	return value
}

// resolve returns the value of a reference.
type resolve func(reference) cty.Value

// valueOf makes a value of a type from settings. What is missing in an object is null.
func valueOf(of cty.Type, from any, get resolve) cty.Value {
	switch from := from.(type) {
	case nil:
		return cty.NullVal(of)
	case reference:
		return as(of, get(from))
	case pick:
		return as(of, from.of(of, get(from.from)))
	case string:
		return cty.StringVal(from)
	case bool:
		return cty.BoolVal(from)
	case int:
		return cty.NumberIntVal(int64(from))
	case []any:
		return listOf(of, from, get)
	case object:
		return objectOf(of, from, get)
	}
	panic(fmt.Sprintf("%T is no setting", from))
}

// as converts a value as Terraform does, such as a list to a set.
func as(of cty.Type, value cty.Value) cty.Value {
	if of == cty.DynamicPseudoType {
		return value
	}
	made, err := convert.Convert(value, of)
	if err != nil {
		panic(err)
	}
	return made
}

func listOf(of cty.Type, from []any, get resolve) cty.Value {
	values := make([]cty.Value, len(from))
	if of == cty.DynamicPseudoType {
		for i, element := range from {
			values[i] = valueOf(of, element, get)
		}
		return cty.TupleVal(values)
	}
	for i, element := range from {
		values[i] = valueOf(of.ElementType(), element, get)
	}
	switch {
	case of.IsSetType() && len(values) == 0:
		return cty.SetValEmpty(of.ElementType())
	case of.IsSetType():
		return cty.SetVal(values)
	case len(values) == 0:
		return cty.ListValEmpty(of.ElementType())
	}
	return cty.ListVal(values)
}

func objectOf(of cty.Type, from object, get resolve) cty.Value {
	values := map[string]cty.Value{}
	switch {
	case of.IsObjectType():
		for name, attribute := range of.AttributeTypes() {
			values[name] = valueOf(attribute, from[name], get)
		}
		return cty.ObjectVal(values)
	case of.IsMapType() && len(from) == 0:
		return cty.MapValEmpty(of.ElementType())
	case of.IsMapType():
		for key, element := range from {
			values[key] = valueOf(of.ElementType(), element, get)
		}
		return cty.MapVal(values)
	}
	for key, element := range from { // a dynamic value
		values[key] = valueOf(cty.DynamicPseudoType, element, get)
	}
	return cty.ObjectVal(values)
}

// references calls each for all references in settings.
func references(settings any, each func(reference)) {
	switch settings := settings.(type) {
	case reference:
		each(settings)
	case pick:
		each(settings.from)
	case []any:
		for _, element := range settings {
			references(element, each)
		}
	case object:
		for _, element := range settings {
			references(element, each)
		}
	}
}

// encode encodes a value as Terraform does.
func encode(of cty.Type, value cty.Value) *tfprotov6.DynamicValue {
	text, err := ctymsgpack.Marshal(value, of)
	if err != nil {
		panic(err)
	}
	return &tfprotov6.DynamicValue{MsgPack: text}
}

// decode decodes what the provider has encoded.
func decode(of cty.Type, value *tfprotov6.DynamicValue) (cty.Value, error) {
	return ctymsgpack.Unmarshal(value.MsgPack, of)
}
