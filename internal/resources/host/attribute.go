package host

import (
	"cmp"
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// attribute describes one attribute of a host: schema, API version, encoding, drift and plan. A nil function means that the
// attribute needs no such step.
type attribute struct {
	name   string
	schema schema.Attribute

	// feature returns the API version that the configuration needs for this attribute.
	feature func(config *model) framework.Feature

	// encode adds the configured value to the settings.
	encode func(ctx context.Context, config *model, s ironic.Settings)

	// read copies the node's value into the model. Of maps and sets it copies only the elements that the model has already,
	// unless everything is true, as after an import. An unknown value always becomes known.
	read func(ctx context.Context, m *model, node *ironic.Node, everything bool)

	// keep restores the planned value, if that is known.
	keep func(ctx context.Context, m, planned *model)

	// omit makes a value null that the configuration which was applied last did not have; before is what it manages. Nil if the state has
	// no other value.
	omit func(m *model, before managed)

	// plan plans a value that the configuration omits. state is nil for a new host; before is what was managed until now.
	plan func(ctx context.Context, m, config, state *model, before managed)
}

// row describes an attribute whose value has type T. Its method attribute derives the functions from it.
type row[T attr.Value] struct {
	name   string
	schema schema.Attribute
	since  api.Microversion     // first API version that has it; 0: every version that the provider supports
	of     func(m *model) *T    // field of the model
	path   string               // JSON patch path, "/" and the name; empty if the attribute is not sent as a setting
	with   string               // removing this managed path removes the value; default: path
	node   func(*ironic.Node) T // the node's value; nil if it depends on more than the node
	gone   T                    // planned value once it is removed, and for a new host
	later  bool                 // on a new host, Ironic or the walk decides the value during the apply
}

func (r row[T]) attribute() attribute {
	a := attribute{name: r.name, schema: r.schema}
	r.with = cmp.Or(r.with, r.path)
	if r.since > 0 {
		a.feature = func(config *model) framework.Feature {
			return framework.Feature{Used: !(*r.of(config)).IsNull(), Since: r.since, Name: path.Root(r.name)}
		}
	}
	if r.path != "" {
		a.encode = func(_ context.Context, config *model, s ironic.Settings) {
			if value := *r.of(config); framework.IsSet(value) {
				s[r.name] = scalar(value)
			}
		}
	}
	if r.node != nil {
		a.read = func(_ context.Context, m *model, node *ironic.Node, _ bool) { *r.of(m) = r.node(node) }
	}
	a.keep = func(_ context.Context, m, planned *model) { framework.Keep(r.of(m), *r.of(planned)) }
	if r.with != "" {
		a.omit = func(m *model, before managed) {
			if !before.has(cmp.Or(r.path, "/"+r.name)) {
				var null T
				*r.of(m) = null
			}
		}
	}
	a.plan = func(_ context.Context, m, config, state *model, before managed) {
		switch {
		case !(*r.of(config)).IsNull():
		case state == nil && r.later: // the framework has planned it as unknown
		case state == nil, r.with != "" && before.has(r.with):
			*r.of(m) = r.gone
		default:
			*r.of(m) = *r.of(state)
		}
	}
	return a
}

func scalar(value attr.Value) any {
	switch v := value.(type) {
	case types.String:
		return v.ValueString()
	case types.Bool:
		return v.ValueBool()
	}
	return nil
}

// quietFlag makes the attribute of a flag that a plan need not show: false is null, unless the state has a value already.
func quietFlag(r row[types.Bool], node func(*ironic.Node) bool) attribute {
	a := r.attribute()
	a.read = func(_ context.Context, m *model, n *ironic.Node, _ bool) {
		*r.of(m) = framework.QuietFlag(*r.of(m), node(n))
	}
	return a
}

// mapRow makes the attribute of a map of strings whose keys are managed one by one; node returns all its entries on a node.
func mapRow(r row[types.Map], node func(*ironic.Node) map[string]string) attribute {
	r.gone = types.MapNull(types.StringType)
	a := r.attribute()
	a.encode = nil
	if r.path != "" {
		a.encode = func(_ context.Context, config *model, s ironic.Settings) {
			for key, value := range framework.StringMap(*r.of(config)) {
				s.SetKey(r.name, key, value)
			}
		}
	}
	if own := ownAttributes[r.name]; len(own) > 0 { // each decides about its key itself
		plan := a.plan
		a.plan = func(ctx context.Context, m, config, state *model, before managed) {
			plan(ctx, m, config, state, before.without(r.path, own))
		}
	}
	a.omit = func(m *model, before managed) {
		has := r.of(m).Elements()
		if !slices.ContainsFunc(before.below(cmp.Or(r.path, r.with)), func(key string) bool { _, is := has[key]; return is }) {
			*r.of(m) = types.MapNull(types.StringType)
		}
	}
	a.read = func(_ context.Context, m *model, n *ironic.Node, everything bool) {
		old := r.of(m)
		switch {
		case everything:
			*old = framework.MapValue(node(n))
		case old.IsUnknown():
			*old = r.gone
		default:
			*old = framework.RefreshMap(*old, node(n))
		}
	}
	return a
}

// text is an optional string for which Ironic may have a value.
func text(description string, validators ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: description, Validators: validators}
}

// free is a text of any content. It has at most the given number of characters.
func free(description string, most int) schema.StringAttribute {
	return text(description, stringvalidator.LengthBetween(1, most))
}

func flag(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Optional: true, Computed: true, MarkdownDescription: description}
}

func texts(description string, validators ...validator.Map) schema.MapAttribute {
	return schema.MapAttribute{
		ElementType: types.StringType, Optional: true, Computed: true, MarkdownDescription: description,
		Validators: validators,
	}
}

func shown(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

// forecast sets a value to a forecast one; null changes nothing.
func forecast[T ~string](value *types.String, to decide.Value[T]) {
	switch {
	case to.Unknown:
		*value = types.StringUnknown()
	case to.Set:
		*value = types.StringValue(string(to.V))
	}
}

// elementsOf returns the elements of a map; nil if it is null or unknown.
func elementsOf[T any](ctx context.Context, value types.Map) map[string]T {
	if !framework.IsSet(value) {
		return nil
	}
	elements := map[string]T{}
	if value.ElementsAs(ctx, &elements, false).HasError() {
		return nil
	}
	return elements
}

// objectOf returns a map of strings as a JSON object; nil if it is null or unknown.
func objectOf(m types.Map) map[string]any {
	values := framework.StringMap(m)
	if values == nil {
		return nil
	}
	object := make(map[string]any, len(values))
	for key, value := range values {
		object[key] = value
	}
	return object
}
