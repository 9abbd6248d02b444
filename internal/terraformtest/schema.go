package terraformtest

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
)

// Server is a provider in this process.
type Server interface {
	tfprotov6.ProviderServer
	Close(context.Context)
}

// Provider is a provider that workspaces use. Each walk over a configuration starts a server of its own, as a CLI starts a process.
type Provider struct {
	Name, Source string // such as metal and terraform-provider-metal/metal
	Start        func() Server

	once  sync.Once
	block *Kind
	kinds map[string]*Kind // by name; those of data sources begin with "data."
}

// Providers are those of a workspace.
type Providers []*Provider

// named returns the provider of a name; nil if there is none.
func (all Providers) named(name string) *Provider {
	for _, p := range all {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// kind returns a kind and its provider; nil if none has it.
func (all Providers) kind(name string) (*Provider, *Kind) {
	for _, p := range all {
		if k := p.Kind(name); k != nil {
			return p, k
		}
	}
	return nil, nil
}

// Kind is a type of resource or data source, or a provider block.
type Kind struct {
	Type       cty.Type
	Attributes []*tfprotov6.SchemaAttribute
	Version    int64

	name   string // without "data."
	isData bool
	spec   hcldec.Spec
	hidden bool // there are sensitive attributes
}

// dataPrefix begins the addresses of data sources.
const dataPrefix = "data."

// Kind returns a kind by name; nil if there is none.
func (p *Provider) Kind(name string) *Kind {
	p.load()
	return p.kinds[name]
}

// Block returns the kind of the provider block.
func (p *Provider) Block() *Kind {
	p.load()
	return p.block
}

func (p *Provider) load() {
	p.once.Do(func() {
		server := p.Start()
		ctx := context.Background() //nolint:forbidigo // once a process
		defer server.Close(ctx)
		resp, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
		if err != nil {
			panic(err)
		}
		p.kinds, p.block = map[string]*Kind{}, kindOf(p.Name, resp.Provider)
		for name, schema := range resp.ResourceSchemas {
			p.kinds[name] = kindOf(name, schema)
		}
		for name, schema := range resp.DataSourceSchemas {
			k := kindOf(name, schema)
			k.isData = true
			p.kinds[dataPrefix+name] = k
		}
	})
}

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
	return &Kind{Type: objectType(attributes, false), Attributes: attributes, Version: schema.Version, name: name, spec: spec, hidden: hasSensitive(attributes)}
}

func hasSensitive(attributes []*tfprotov6.SchemaAttribute) bool {
	for _, a := range attributes {
		if a.Sensitive || a.NestedType != nil && hasSensitive(a.NestedType.Attributes) {
			return true
		}
	}
	return false
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

// Null returns the null value of the kind, which stands for an object that does not exist.
func (k *Kind) Null() cty.Value { return cty.NullVal(k.Type) }

// Encode encodes a value for the provider.
func (k *Kind) Encode(value cty.Value) *tfprotov6.DynamicValue {
	text, err := ctymsgpack.Marshal(value, k.Type)
	if err != nil {
		panic(fmt.Sprintf("encode %s: %v", k.name, err))
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

// sensitive marks a value that must not be shown; ephemeral one that must not be stored.
type mark string

const (
	sensitive mark = "sensitive"
	ephemeral mark = "ephemeral"
)

// marked marks the values of sensitive attributes.
func (k *Kind) marked(value cty.Value) cty.Value {
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
			values[a.Name] = values[a.Name].Mark(sensitive)
		case a.NestedType != nil && a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle:
			values[a.Name] = markAttributes(a.NestedType.Attributes, values[a.Name])
		}
	}
	return cty.ObjectVal(values)
}

// decodeBody evaluates a body.
func (k *Kind) decodeBody(body hcl.Body, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	return hcldec.Decode(body, k.spec, ctx)
}
