package language

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	"go.yaml.in/yaml/v2"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
)

// typeConstructors look like functions in the type of a variable.
var typeConstructors = []string{"list", "set", "map", "object", "tuple", "optional"}

// missingFunction returns the name of a function that a file calls and that is neither one of Functions nor of a provider; "" if there is
// none.
func missingFunction(file *hcl.File, from schema.Providers) (name string) {
	known := Functions("", time.Time{})
	body, is := file.Body.(*hclsyntax.Body)
	if !is {
		return ""
	}
	_ = hclsyntax.VisitAll(body, func(node hclsyntax.Node) hcl.Diagnostics { // it has only the diagnostics of this function
		if call, is := node.(*hclsyntax.FunctionCallExpr); is {
			if _, found := known[call.Name]; !found && !from.HasFunction(call.Name) && !slices.Contains(typeConstructors, call.Name) {
				name = call.Name
			}
		}
		return nil
	})
	return name
}

// Functions returns the functions for expressions. Files are relative to a directory. A configuration that calls another function needs a
// real CLI.
func Functions(dir string, started time.Time) map[string]function.Function {
	return map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "max": stdlib.MaxFunc, "min": stdlib.MinFunc,
		"parseint": stdlib.ParseIntFunc, "chomp": stdlib.ChompFunc, "format": stdlib.FormatFunc, "formatlist": stdlib.FormatListFunc,
		"join": stdlib.JoinFunc, "lower": stdlib.LowerFunc, "upper": stdlib.UpperFunc, "replace": replaceFunction,
		"split": stdlib.SplitFunc, "substr": stdlib.SubstrFunc, "trimspace": stdlib.TrimSpaceFunc, "trimprefix": stdlib.TrimPrefixFunc,
		"trimsuffix": stdlib.TrimSuffixFunc, "regex": stdlib.RegexFunc, "regexall": stdlib.RegexAllFunc, "title": stdlib.TitleFunc,
		"chunklist": stdlib.ChunklistFunc, "coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc,
		"concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc,
		"flatten": stdlib.FlattenFunc, "keys": stdlib.KeysFunc, "merge": stdlib.MergeFunc, "range": stdlib.RangeFunc,
		"reverse": stdlib.ReverseListFunc, "setintersection": stdlib.SetIntersectionFunc, "setproduct": stdlib.SetProductFunc,
		"setsubtract": stdlib.SetSubtractFunc, "setunion": stdlib.SetUnionFunc, "slice": stdlib.SliceFunc, "sort": stdlib.SortFunc,
		"values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc, "coalesce": coalesceFunction, "lookup": lookupFunction,
		"jsonencode": stdlib.JSONEncodeFunc, "jsondecode": stdlib.JSONDecodeFunc, "csvdecode": stdlib.CSVDecodeFunc,
		"tobool": stdlib.MakeToFunc(cty.Bool), "tonumber": stdlib.MakeToFunc(cty.Number), "tostring": stdlib.MakeToFunc(cty.String),
		"tolist": stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)), "toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
		"tomap": stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)), "alltrue": quantified(true), "anytrue": quantified(false),
		"trim": stdlib.TrimFunc, "yamldecode": yamlFunction, "cidrhost": cidrHostFunction, "cidrsubnet": cidrSubnetFunction,
		"try": tryfunc.TryFunc, "can": tryfunc.CanFunc, "length": lengthFunction, "one": oneFunction,
		"endswith": onStrings(cty.Bool, func(s []string) (cty.Value, error) {
			return cty.BoolVal(bytes.HasSuffix([]byte(s[0]), []byte(s[1]))), nil
		}, "text", "suffix"),
		"startswith": onStrings(cty.Bool, func(s []string) (cty.Value, error) {
			return cty.BoolVal(bytes.HasPrefix([]byte(s[0]), []byte(s[1]))), nil
		}, "text", "prefix"),
		"strcontains": onStrings(cty.Bool, func(s []string) (cty.Value, error) {
			return cty.BoolVal(strings.Contains(s[0], s[1])), nil
		}, "text", "part"),
		"fileset": onStrings(cty.Set(cty.String), func(s []string) (cty.Value, error) {
			return fileSet(Within(dir, s[0]), s[1])
		}, "path", "pattern"),
		"filesha256": onText(func(s string) (string, error) {
			text, err := os.ReadFile(Within(dir, s))
			return fmt.Sprintf("%x", sha256.Sum256(text)), err
		}),
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
		"file": onText(func(s string) (string, error) { text, err := os.ReadFile(Within(dir, s)); return string(text), err }),
		"filebase64": onText(func(s string) (string, error) {
			text, err := os.ReadFile(Within(dir, s))
			return base64.StdEncoding.EncodeToString(text), err
		}),
		"plantimestamp": onStrings(cty.String, func([]string) (cty.Value, error) {
			return cty.StringVal(started.UTC().Format(time.RFC3339)), nil
		}),
		"sensitive":    marking(func(v cty.Value) cty.Value { return v.Mark(schema.Sensitive) }),
		"nonsensitive": marking(func(v cty.Value) cty.Value { v, _ = v.Unmark(); return v }),
	}
}

// Within returns the path of a file that a configuration or a command in a directory names.
func Within(dir, name string) string {
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

// fileSet returns the names of the files in a directory that a pattern fits, which has no "**".
func fileSet(dir, pattern string) (cty.Value, error) {
	names, err := fs.Glob(os.DirFS(dir), pattern)
	if err != nil || len(names) == 0 {
		return cty.SetValEmpty(cty.String), err
	}
	files := make([]cty.Value, len(names))
	for i, name := range names {
		files[i] = cty.StringVal(name)
	}
	return cty.SetVal(files), nil
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
		Params: []function.Parameter{{
			Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowMarked: true,
			AllowDynamicType: true,
		}},
		Type: func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return do(args[0]), nil },
	})
}

// replaceFunction replaces a text, or what a regular expression between slashes fits.
var replaceFunction = onStrings(cty.String, func(s []string) (cty.Value, error) {
	text, old, by := cty.StringVal(s[0]), s[1], cty.StringVal(s[2])
	if len(old) > 1 && strings.HasPrefix(old, "/") && strings.HasSuffix(old, "/") {
		return stdlib.RegexReplace(text, cty.StringVal(old[1:len(old)-1]), by)
	}
	return stdlib.Replace(text, cty.StringVal(old), by)
}, "text", "old", "by")

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

// coalesceFunction is coalesce as Terraform has it: it passes over empty strings, too, unlike the library's.
var coalesceFunction = function.New(&function.Spec{
	VarParam: &function.Parameter{Name: "vals", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true, AllowNull: true},
	Type:     stdlib.CoalesceFunc.ReturnTypeForValues,
	Impl: func(args []cty.Value, result cty.Type) (cty.Value, error) {
		given := slices.Clone(args)
		for i, arg := range given {
			if result == cty.String && arg.IsKnown() && arg.RawEquals(cty.StringVal("")) {
				given[i] = cty.NullVal(cty.String)
			}
		}
		return stdlib.CoalesceFunc.Call(given)
	},
})

// lookupFunction is lookup as Terraform has it: the default may be null, unlike in the library's.
var lookupFunction = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "inputMap", Type: cty.DynamicPseudoType, AllowMarked: true},
		{Name: "key", Type: cty.String, AllowMarked: true},
	},
	VarParam: &function.Parameter{
		Name: "default", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true, AllowNull: true,
		AllowMarked: true,
	},
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

// quantified makes alltrue and anytrue. As in Terraform, what follows the first unknown element does not count.
func quantified(all bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			for it := args[0].ElementIterator(); it.Next(); {
				switch _, one := it.Element(); {
				case !one.IsKnown():
					return cty.UnknownVal(cty.Bool), nil
				case one.IsNull() && all:
					return cty.False, nil
				case !one.IsNull() && one.True() != all:
					return one, nil
				}
			}
			return cty.BoolVal(all), nil
		},
	})
}

// yamlFunction is yamldecode.
var yamlFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "src", Type: cty.String}},
	Type: func(args []cty.Value) (cty.Type, error) {
		if !args[0].IsKnown() {
			return cty.DynamicPseudoType, nil
		}
		value, err := decodeYAML(args[0].AsString())
		return value.Type(), err
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return decodeYAML(args[0].AsString()) },
})

func decodeYAML(text string) (cty.Value, error) {
	var content any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		return cty.DynamicVal, err
	}
	return ofYAML(content)
}

// ofYAML converts what a YAML document has: objects, tuples, texts, numbers and booleans.
func ofYAML(content any) (cty.Value, error) {
	switch content := content.(type) {
	case nil:
		return cty.NullVal(cty.DynamicPseudoType), nil
	case map[any]any:
		object := map[string]cty.Value{}
		for key, inner := range content {
			value, err := ofYAML(inner)
			if err != nil {
				return cty.DynamicVal, err
			}
			object[fmt.Sprint(key)] = value
		}
		return cty.ObjectVal(object), nil
	case []any:
		list := make([]cty.Value, len(content))
		for i, inner := range content {
			var err error
			if list[i], err = ofYAML(inner); err != nil {
				return cty.DynamicVal, err
			}
		}
		return cty.TupleVal(list), nil
	case string:
		return cty.StringVal(content), nil
	case bool:
		return cty.BoolVal(content), nil
	case int:
		return cty.NumberIntVal(int64(content)), nil
	case float64:
		return cty.NumberFloatVal(content), nil
	}
	return cty.DynamicVal, fmt.Errorf("a value of type %T in YAML", content)
}
