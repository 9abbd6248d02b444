package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/lint"
)

// keys returns what metal lint knows: the shapes of the attributes that have objects, by kind and type of their blocks, and of the inputs
// of the modules in a directory.
func keys(ctx context.Context, server tfprotov6.ProviderServer, modules string) (map[string]map[string]lint.Shape, error) {
	schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, fmt.Errorf("provider schema: %w", err)
	}
	found := map[string]map[string]lint.Shape{
		"provider": {"metal": shapes(schemas.Provider)}, "resource": each(schemas.ResourceSchemas, shapes),
		"data": each(schemas.DataSourceSchemas, shapes), "ephemeral": each(schemas.EphemeralResourceSchemas, shapes),
		"list":   each(schemas.ListResourceSchemas, shapes),
		"action": each(schemas.ActionSchemas, func(a *tfprotov6.ActionSchema) lint.Shape { return shapes(a.Schema) }),
		"module": {},
	}
	files, err := filepath.Glob(filepath.Join(modules, "*", "variables.tf"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		inputs, err := lint.Inputs(filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(inputs, func(_ string, shape lint.Shape) bool { return shape == nil })
		found["module"][filepath.Base(filepath.Dir(file))] = inputs
	}
	for _, kinds := range found {
		for name, shape := range kinds {
			if len(shape) == 0 {
				delete(kinds, name)
			}
		}
	}
	return found, nil
}

// shapes returns the shapes of the attributes of a block that have objects.
func shapes(schema *tfprotov6.Schema) lint.Shape {
	found := lint.Shape{}
	for name, shape := range objects(schema.Block.Attributes) {
		if shape != nil {
			found[name] = shape
		}
	}
	return found
}

// objects returns the shapes of attributes.
func objects(attributes []*tfprotov6.SchemaAttribute) lint.Shape {
	found := lint.Shape{}
	for _, a := range attributes {
		found[a.Name] = nil
		switch {
		case a.NestedType == nil || !a.Required && !a.Optional:
		case a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle:
			found[a.Name] = objects(a.NestedType.Attributes)
		default:
			found[a.Name] = lint.Shape{lint.AnyKey: objects(a.NestedType.Attributes)}
		}
		if a.Type != nil && strings.Contains(a.Type.String(), "Object[") {
			panic(a.Name + " is an object without nested attributes, which this program does not read")
		}
	}
	return found
}
