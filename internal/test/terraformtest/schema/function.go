package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
)

// Call calls a function of a provider.
type Call func(context.Context, *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error)

// Functions returns the provider's functions under the names by which expressions call them. As in Terraform, an argument with an
// unknown part makes the result unknown, and the provider is not called.
func (p *Provider) Functions(ctx context.Context, call Call) map[string]function.Function {
	p.load()
	all := map[string]function.Function{}
	for name, f := range p.functions {
		if f.VariadicParameter != nil {
			panic(name + " has a variadic parameter, which this package does not support")
		}
		spec := &function.Spec{Type: function.StaticReturnType(terraformType(f.Return.Type))}
		for _, parameter := range f.Parameters {
			of := terraformType(parameter.Type)
			spec.Params = append(spec.Params, function.Parameter{
				Name: parameter.Name, Type: of, AllowNull: parameter.AllowNullValue, AllowUnknown: parameter.AllowUnknownValues,
				AllowDynamicType: of == cty.DynamicPseudoType,
			})
		}
		spec.Impl = func(args []cty.Value, result cty.Type) (cty.Value, error) {
			return callFunction(ctx, call, name, f, args, result)
		}
		all["provider::"+p.Name+"::"+name] = function.New(spec)
	}
	return all
}

// HasFunction reports whether one of the providers has a function, such as provider::metal::bmc.
func (all Providers) HasFunction(name string) bool {
	for _, p := range all {
		p.load()
		if function, is := strings.CutPrefix(name, "provider::"+p.Name+"::"); is && p.functions[function] != nil {
			return true
		}
	}
	return false
}

// callFunction calls a function of a provider.
func callFunction(ctx context.Context, call Call, name string, f *tfprotov6.Function, args []cty.Value,
	result cty.Type,
) (cty.Value, error) {
	req := &tfprotov6.CallFunctionRequest{Name: name}
	for i, arg := range args {
		if !f.Parameters[i].AllowUnknownValues && !arg.IsWhollyKnown() {
			return cty.UnknownVal(result), nil
		}
		text, err := ctymsgpack.Marshal(arg, terraformType(f.Parameters[i].Type))
		if err != nil {
			return cty.NilVal, err
		}
		req.Arguments = append(req.Arguments, &tfprotov6.DynamicValue{MsgPack: text})
	}
	resp, err := call(ctx, req)
	switch {
	case err != nil:
		return cty.NilVal, fmt.Errorf("provider error: %w", err)
	case resp.Error != nil && resp.Error.FunctionArgument != nil:
		return cty.NilVal, function.NewArgError(int(*resp.Error.FunctionArgument), errors.New(resp.Error.Text))
	case resp.Error != nil:
		return cty.NilVal, errors.New(resp.Error.Text)
	}
	return ctymsgpack.Unmarshal(resp.Result.MsgPack, result)
}
