package framework

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
)

// Terraform reads the same value from a state whose numbers are texts.
func TestTextNumbers_readAsSameValue(t *testing.T) {
	t.Parallel()
	value := cty.ObjectVal(map[string]cty.Value{
		"small": cty.NumberIntVal(7), "negative": cty.NumberIntVal(-300), "large": cty.NumberUIntVal(1 << 63),
		"half": cty.NumberFloatVal(0.5), "null": cty.NullVal(cty.Number),
		"text": cty.StringVal("42"), "flag": cty.True, "list": cty.ListVal([]cty.Value{cty.NumberIntVal(70000), cty.NumberIntVal(1)}),
		"map": cty.MapVal(map[string]cty.Value{"a": cty.ObjectVal(map[string]cty.Value{"n": cty.NumberIntVal(5000000000)})}),
	})
	kind := value.Type()
	state, err := ctymsgpack.Marshal(value, kind)
	if err != nil {
		t.Fatal(err)
	}
	texts := WithTextNumbers(&tfprotov6.DynamicValue{MsgPack: state})
	read, err := ctymsgpack.Unmarshal(texts.MsgPack, kind)
	if err != nil {
		t.Fatal(err)
	}
	if !read.RawEquals(value) {
		t.Errorf("read is %#v", read)
	}
	var raw map[string]any
	if err := msgpack.Unmarshal(texts.MsgPack, &raw); err != nil || raw["small"] != "7" || raw["negative"] != "-300" ||
		raw["half"] != "0.5" {
		t.Errorf("the numbers are %v, %v", raw, err)
	}
	if broken := (&tfprotov6.DynamicValue{MsgPack: []byte{0x81, 0xa1}}); WithTextNumbers(broken) != broken {
		t.Error("a state that cannot be read is changed")
	}
}
