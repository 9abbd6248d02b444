// Command schemas prints the schemas of the provider as "terraform providers schema -json" does, without a Terraform CLI:
// it asks the provider server itself. tfplugindocs reads the result, so the generated pages do not depend on a developer's CLI. With the
// directory of the modules as its argument, it prints what metal lint knows instead.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// name is the key under which tfplugindocs looks for the provider.
const name = "metal"

func main() {
	var printed any
	var err error
	server := provider.NewServer("docs")
	if len(os.Args) > 1 {
		printed, err = keys(context.Background(), server, os.Args[1])
	} else {
		printed, err = providerSchemas(context.Background(), server)
	}
	if err == nil {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(printed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

// providerSchemas asks the server for everything that has a page in the documentation.
func providerSchemas(ctx context.Context, server tfprotov6.ProviderServer) (*tfjson.ProviderSchemas, error) {
	schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, fmt.Errorf("provider schema: %w", err)
	}
	if err := diagnosticsError(schemas.Diagnostics); err != nil {
		return nil, fmt.Errorf("provider schema: %w", err)
	}
	identities, err := server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		return nil, fmt.Errorf("resource identity schemas: %w", err)
	}
	if err := diagnosticsError(identities.Diagnostics); err != nil {
		return nil, fmt.Errorf("resource identity schemas: %w", err)
	}
	return &tfjson.ProviderSchemas{
		FormatVersion: "1.0",
		Schemas: map[string]*tfjson.ProviderSchema{name: {
			ConfigSchema:             schema(schemas.Provider),
			ResourceSchemas:          each(schemas.ResourceSchemas, schema),
			DataSourceSchemas:        each(schemas.DataSourceSchemas, schema),
			EphemeralResourceSchemas: each(schemas.EphemeralResourceSchemas, schema),
			ListResourceSchemas:      each(schemas.ListResourceSchemas, schema),
			ActionSchemas:            each(schemas.ActionSchemas, action),
			Functions:                each(schemas.Functions, function),
			ResourceIdentitySchemas:  each(identities.IdentitySchemas, identity),
		}},
	}, nil
}

// diagnosticsError joins the errors among the diagnostics.
func diagnosticsError(diagnostics []*tfprotov6.Diagnostic) error {
	var errs []error
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			errs = append(errs, fmt.Errorf("%s: %s", d.Summary, d.Detail))
		}
	}
	return errors.Join(errs...)
}

// each converts every value of a map.
func each[From, To any](from map[string]From, convert func(From) To) map[string]To {
	to := make(map[string]To, len(from))
	for key, value := range from {
		to[key] = convert(value)
	}
	return to
}

func schema(from *tfprotov6.Schema) *tfjson.Schema {
	return &tfjson.Schema{Version: uint64(from.Version), Block: block(from.Block)}
}

func action(from *tfprotov6.ActionSchema) *tfjson.ActionSchema {
	return &tfjson.ActionSchema{Block: block(from.Schema.Block)}
}

func block(from *tfprotov6.SchemaBlock) *tfjson.SchemaBlock {
	blocks := make(map[string]*tfjson.SchemaBlockType, len(from.BlockTypes))
	for _, b := range from.BlockTypes {
		blocks[b.TypeName] = &tfjson.SchemaBlockType{
			NestingMode: tfjson.SchemaNestingMode(strings.ToLower(b.Nesting.String())),
			Block:       block(b.Block),
			MinItems:    uint64(b.MinItems),
			MaxItems:    uint64(b.MaxItems),
		}
	}
	return &tfjson.SchemaBlock{
		Attributes:      attributes(from.Attributes),
		NestedBlocks:    blocks,
		Description:     from.Description,
		DescriptionKind: descriptionKind(from.DescriptionKind),
		Deprecated:      from.Deprecated,
	}
}

func attributes(from []*tfprotov6.SchemaAttribute) map[string]*tfjson.SchemaAttribute {
	to := make(map[string]*tfjson.SchemaAttribute, len(from))
	for _, a := range from {
		attribute := &tfjson.SchemaAttribute{
			AttributeType:   ctyType(a.Type),
			Description:     a.Description,
			DescriptionKind: descriptionKind(a.DescriptionKind),
			Deprecated:      a.Deprecated,
			Required:        a.Required,
			Optional:        a.Optional,
			Computed:        a.Computed,
			Sensitive:       a.Sensitive,
			WriteOnly:       a.WriteOnly,
		}
		if a.NestedType != nil {
			attribute.AttributeNestedType = &tfjson.SchemaNestedAttributeType{
				Attributes:  attributes(a.NestedType.Attributes),
				NestingMode: tfjson.SchemaNestingMode(strings.ToLower(a.NestedType.Nesting.String())),
			}
		}
		to[a.Name] = attribute
	}
	return to
}

func identity(from *tfprotov6.ResourceIdentitySchema) *tfjson.IdentitySchema {
	to := &tfjson.IdentitySchema{Version: uint64(from.Version), Attributes: map[string]*tfjson.IdentityAttribute{}}
	for _, a := range from.IdentityAttributes {
		to.Attributes[a.Name] = &tfjson.IdentityAttribute{
			IdentityType:      ctyType(a.Type),
			Description:       a.Description,
			RequiredForImport: a.RequiredForImport,
			OptionalForImport: a.OptionalForImport,
		}
	}
	return to
}

func function(from *tfprotov6.Function) *tfjson.FunctionSignature {
	to := &tfjson.FunctionSignature{
		Description:        from.Description,
		Summary:            from.Summary,
		DeprecationMessage: from.DeprecationMessage,
		ReturnType:         ctyType(from.Return.Type),
	}
	for _, p := range from.Parameters {
		to.Parameters = append(to.Parameters, parameter(p))
	}
	if from.VariadicParameter != nil {
		to.VariadicParameter = parameter(from.VariadicParameter)
	}
	return to
}

func parameter(from *tfprotov6.FunctionParameter) *tfjson.FunctionParameter {
	return &tfjson.FunctionParameter{
		Name: from.Name, Description: from.Description, IsNullable: from.AllowNullValue, Type: ctyType(from.Type),
	}
}

func descriptionKind(kind tfprotov6.StringKind) tfjson.SchemaDescriptionKind {
	if kind == tfprotov6.StringKindMarkdown {
		return tfjson.SchemaDescriptionKindMarkdown
	}
	return tfjson.SchemaDescriptionKindPlain
}

// ctyType converts a type by way of the JSON that both libraries share. A nil type, which stands for a nested attribute,
// stays nil.
func ctyType(from tftypes.Type) cty.Type {
	var to cty.Type
	if from == nil {
		return to
	}
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, &to)
	}
	if err != nil {
		panic(fmt.Sprintf("type %s: %v", from, err)) // a type of the protocol that cty does not know: this program is out of date
	}
	return to
}
