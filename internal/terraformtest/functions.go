package terraformtest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functionsIn returns the functions for expressions. Files are relative to a directory. A function that is missing here is an error
// of the configuration.
func functionsIn(dir string, started time.Time) map[string]function.Function {
	return map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "max": stdlib.MaxFunc, "min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc,
		"chomp": stdlib.ChompFunc, "format": stdlib.FormatFunc, "formatlist": stdlib.FormatListFunc, "join": stdlib.JoinFunc, "lower": stdlib.LowerFunc, "upper": stdlib.UpperFunc,
		"replace": stdlib.ReplaceFunc, "split": stdlib.SplitFunc, "substr": stdlib.SubstrFunc, "trimspace": stdlib.TrimSpaceFunc, "trimprefix": stdlib.TrimPrefixFunc,
		"trimsuffix": stdlib.TrimSuffixFunc, "regex": stdlib.RegexFunc, "regexall": stdlib.RegexAllFunc, "title": stdlib.TitleFunc,
		"chunklist": stdlib.ChunklistFunc, "coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc,
		"distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc, "flatten": stdlib.FlattenFunc, "keys": stdlib.KeysFunc, "merge": stdlib.MergeFunc, "range": stdlib.RangeFunc,
		"reverse": stdlib.ReverseListFunc, "setintersection": stdlib.SetIntersectionFunc, "setproduct": stdlib.SetProductFunc, "setsubtract": stdlib.SetSubtractFunc,
		"setunion": stdlib.SetUnionFunc, "slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc, "coalesce": stdlib.CoalesceFunc,
		"lookup": lookupFunction, "jsonencode": stdlib.JSONEncodeFunc, "jsondecode": stdlib.JSONDecodeFunc, "csvdecode": stdlib.CSVDecodeFunc,
		"tobool": stdlib.MakeToFunc(cty.Bool), "tonumber": stdlib.MakeToFunc(cty.Number), "tostring": stdlib.MakeToFunc(cty.String),
		"tolist": stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)), "toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)), "tomap": stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
		"try": tryfunc.TryFunc, "can": tryfunc.CanFunc, "length": lengthFunction, "one": oneFunction,
		"endswith": onStrings(cty.Bool, func(s []string) (cty.Value, error) {
			return cty.BoolVal(bytes.HasSuffix([]byte(s[0]), []byte(s[1]))), nil
		}, "text", "suffix"),
		"startswith": onStrings(cty.Bool, func(s []string) (cty.Value, error) {
			return cty.BoolVal(bytes.HasPrefix([]byte(s[0]), []byte(s[1]))), nil
		}, "text", "prefix"),
		"base64encode": onText(func(s string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(s)), nil }),
		"base64decode": onText(func(s string) (string, error) {
			text, err := base64.StdEncoding.DecodeString(s)
			return string(text), err
		}),
		"base64gzip": onText(gzipped),
		"sha256": onText(func(s string) (string, error) {
			sum := sha256.Sum256([]byte(s))
			return hex.EncodeToString(sum[:]), nil
		}),
		"file": onText(func(s string) (string, error) { text, err := os.ReadFile(within(dir, s)); return string(text), err }),
		"filebase64": onText(func(s string) (string, error) {
			text, err := os.ReadFile(within(dir, s))
			return base64.StdEncoding.EncodeToString(text), err
		}),
		"plantimestamp": onStrings(cty.String, func([]string) (cty.Value, error) { return cty.StringVal(started.UTC().Format(time.RFC3339)), nil }),
		"sensitive":     marking(func(v cty.Value) cty.Value { return v.Mark(sensitive) }),
		"nonsensitive":  marking(func(v cty.Value) cty.Value { v, _ = v.Unmark(); return v }),
	}
}

func within(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// onStrings makes a function of strings.
func onStrings(result cty.Type, do func([]string) (cty.Value, error), names ...string) function.Function {
	spec := &function.Spec{Type: function.StaticReturnType(result), Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		texts := make([]string, len(args))
		for i, arg := range args {
			texts[i] = arg.AsString()
		}
		return do(texts)
	}}
	for _, name := range names {
		spec.Params = append(spec.Params, function.Parameter{Name: name, Type: cty.String})
	}
	return function.New(spec)
}

// onText makes a function of one string.
func onText(do func(string) (string, error)) function.Function {
	return onStrings(cty.String, func(s []string) (cty.Value, error) {
		text, err := do(s[0])
		return cty.StringVal(text), err
	}, "text")
}

func gzipped(text string) (string, error) {
	var out bytes.Buffer
	to := gzip.NewWriter(&out)
	if _, err := to.Write([]byte(text)); err != nil {
		return "", err
	}
	if err := to.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(out.Bytes()), nil
}

// marking makes a function that changes only marks.
func marking(do func(cty.Value) cty.Value) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true}},
		Type:   func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return do(args[0]), nil },
	})
}

// lengthFunction is length of a string, or of a collection.
var lengthFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		of := args[0]
		switch {
		case of.Type().IsTupleType():
			return cty.NumberIntVal(int64(len(of.Type().TupleElementTypes()))), nil
		case of.Type().IsObjectType():
			return cty.NumberIntVal(int64(len(of.Type().AttributeTypes()))), nil
		case !of.IsKnown():
			return cty.UnknownVal(cty.Number), nil
		case of.Type() == cty.String:
			return stdlib.Strlen(of)
		}
		return of.Length(), nil
	},
})

// oneFunction returns the only element of a collection; null if it is empty.
var oneFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type: func(args []cty.Value) (cty.Type, error) {
		switch of := args[0].Type(); {
		case of.IsTupleType() && of.Length() == 1:
			return of.TupleElementType(0), nil
		case of.IsListType(), of.IsSetType():
			return of.ElementType(), nil
		}
		return cty.DynamicPseudoType, nil
	},
	Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
		list, err := convert.Convert(args[0], cty.List(cty.DynamicPseudoType))
		if err != nil || list.LengthInt() > 1 {
			return cty.NilVal, function.NewArgErrorf(0, "must be a list, set, or tuple value with either zero or one elements")
		}
		if list.LengthInt() == 0 {
			return cty.NullVal(result), nil
		}
		return list.Index(cty.Zero), nil
	},
})

// lookupFunction is lookup as Terraform has it: the default may be null, unlike in the library's.
var lookupFunction = function.New(&function.Spec{
	Params:   []function.Parameter{{Name: "inputMap", Type: cty.DynamicPseudoType, AllowMarked: true}, {Name: "key", Type: cty.String, AllowMarked: true}},
	VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true, AllowNull: true, AllowMarked: true},
	Type: func(args []cty.Value) (cty.Type, error) {
		if len(args) > 3 {
			return cty.NilType, fmt.Errorf("lookup() takes two or three arguments, got %d", len(args))
		}
		of := args[0].Type()
		switch {
		case of.IsObjectType():
			if !args[1].IsKnown() {
				return cty.DynamicPseudoType, nil
			}
			key, _ := args[1].Unmark()
			switch {
			case of.HasAttribute(key.AsString()):
				return of.AttributeType(key.AsString()), nil
			case len(args) == 3:
				return args[2].Type(), nil
			}
			return cty.DynamicPseudoType, function.NewArgErrorf(0, "the given object has no attribute %q", key.AsString())
		case of.IsMapType():
			if len(args) == 3 {
				if _, err := convert.Convert(args[2], of.ElementType()); err != nil {
					return cty.NilType, function.NewArgErrorf(2, "the default value must have the same type as the map elements")
				}
			}
			return of.ElementType(), nil
		}
		return cty.NilType, function.NewArgErrorf(0, "lookup() requires a map as the first argument")
	},
	Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
		in, marks := args[0].Unmark()
		key, more := args[1].Unmark()
		switch {
		case !in.IsKnown():
			return cty.UnknownVal(result).WithMarks(marks, more), nil
		case in.Type().IsObjectType() && in.Type().HasAttribute(key.AsString()):
			return in.GetAttr(key.AsString()).WithMarks(marks, more), nil
		case in.Type().IsMapType() && in.HasIndex(key).True():
			return in.Index(key).WithMarks(marks, more), nil
		case len(args) == 3:
			fallback, err := convert.Convert(args[2], result)
			if err != nil {
				return cty.NilVal, err
			}
			return fallback.WithMarks(marks, more), nil
		}
		return cty.DynamicVal, fmt.Errorf("lookup failed to find key %q", key.AsString())
	},
})

// Builtin is Terraform's own provider, with terraform_data.
var Builtin = &Provider{Name: "terraform", Source: "terraform.io/builtin/terraform", Start: func() Server { return builtin{} }}

// builtin serves terraform_data.
type builtin struct{ tfprotov6.ProviderServer }

// Close does nothing.
func (builtin) Close(context.Context) {}

var dataSchema = &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{
	{Name: "input", Type: tftypes.DynamicPseudoType, Optional: true},
	{Name: "output", Type: tftypes.DynamicPseudoType, Computed: true},
	{Name: "triggers_replace", Type: tftypes.DynamicPseudoType, Optional: true},
	{Name: "id", Type: tftypes.String, Computed: true},
}}}

var dataKind = kindOf("terraform_data", dataSchema)

// GetProviderSchema returns the schemas.
func (builtin) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	return &tfprotov6.GetProviderSchemaResponse{ResourceSchemas: map[string]*tfprotov6.Schema{"terraform_data": dataSchema}}, nil
}

// ValidateProviderConfig accepts everything.
func (builtin) ValidateProviderConfig(context.Context, *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{}, nil
}

// ConfigureProvider does nothing.
func (builtin) ConfigureProvider(context.Context, *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return &tfprotov6.ConfigureProviderResponse{}, nil
}

// ValidateResourceConfig accepts everything.
func (builtin) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

// UpgradeResourceState decodes a state.
func (builtin) UpgradeResourceState(_ context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	value, err := dataKind.Decode(&tfprotov6.DynamicValue{JSON: req.RawState.JSON})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: dataKind.Encode(value)}, nil
}

// ReadResource returns what is in state.
func (builtin) ReadResource(_ context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, Private: req.Private}, nil
}

// PlanResourceChange plans the output of an input, and a new ID if the triggers change.
func (builtin) PlanResourceChange(_ context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	resp := &tfprotov6.PlanResourceChangeResponse{PlannedState: req.ProposedNewState, PlannedPrivate: req.PriorPrivate}
	prior, err := dataKind.Decode(req.PriorState)
	if err != nil {
		return nil, err
	}
	next, err := dataKind.Decode(req.ProposedNewState)
	if err != nil || next.IsNull() {
		return resp, err
	}
	values := next.AsValueMap()
	switch {
	case prior.IsNull():
		values["id"] = cty.UnknownVal(cty.String)
		values["output"] = cty.UnknownVal(values["input"].Type())
		if values["input"].IsNull() {
			values["output"] = cty.NullVal(cty.DynamicPseudoType)
		}
	case !prior.GetAttr("triggers_replace").RawEquals(values["triggers_replace"]):
		values["id"] = cty.UnknownVal(cty.String)
		values["output"] = cty.UnknownVal(values["input"].Type())
		resp.RequiresReplace = []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("triggers_replace")}
	case !prior.GetAttr("input").RawEquals(values["input"]):
		values["output"] = cty.UnknownVal(values["input"].Type())
	}
	resp.PlannedState = dataKind.Encode(cty.ObjectVal(values))
	return resp, nil
}

// ApplyResourceChange sets the output, and the ID of a new object.
func (builtin) ApplyResourceChange(_ context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	planned, err := dataKind.Decode(req.PlannedState)
	if err != nil || planned.IsNull() {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: req.PlannedState}, err
	}
	values := planned.AsValueMap()
	values["output"] = values["input"]
	if !values["id"].IsKnown() {
		id := make([]byte, 16)
		if _, err := rand.Read(id); err != nil {
			return nil, err
		}
		values["id"] = cty.StringVal(fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]))
	}
	return &tfprotov6.ApplyResourceChangeResponse{NewState: dataKind.Encode(cty.ObjectVal(values)), Private: req.PlannedPrivate}, nil
}
