package framework

import (
	"context"
	"errors"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestModelsAreEqualIfAllFieldsAre(t *testing.T) {
	t.Parallel()
	type model struct {
		Name types.String
		CPUs types.Int64
	}
	a := model{types.StringValue("r1"), types.Int64Null()}
	for name, tt := range map[string]struct {
		b    model
		want bool
	}{
		"the same":        {model{types.StringValue("r1"), types.Int64Null()}, true},
		"another name":    {model{types.StringValue("r2"), types.Int64Null()}, false},
		"zero for null":   {model{types.StringValue("r1"), types.Int64Value(0)}, false},
		"an unknown name": {model{types.StringUnknown(), types.Int64Null()}, false},
	} {
		if got := EqualModels(&a, &tt.b); got != tt.want {
			t.Errorf("%s: equal = %v, want %v", name, got, tt.want)
		}
	}
	type other struct{ Count int }
	if EqualModels(&other{1}, &other{1}) {
		t.Error("models with a field that is no attribute are equal; want false, because nothing compares it")
	}
}

func TestOnceAsksOnceInAnRPC(t *testing.T) {
	t.Parallel()
	asked, refused := 0, errors.New("refused")
	ask := func(ctx context.Context) {
		value, err := Once(ctx, func() (int, error) { asked++; return asked, refused })
		if value != asked || !errors.Is(err, refused) {
			t.Errorf("the answer is %d and %v, want %d and %v", value, err, asked, refused)
		}
	}
	rpc := WithAnswer(t.Context())
	ask(rpc)
	ask(rpc)
	if asked != 1 {
		t.Errorf("asked %d times in one RPC, want once", asked)
	}
	ask(WithAnswer(t.Context()))
	ask(t.Context()) // without an RPC
	if asked != 3 {
		t.Errorf("asked %d times, want 3", asked)
	}
}
