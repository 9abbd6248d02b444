package framework

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
)

// Refresher is a resource that can tell with little work that a Read would change nothing. Its identity is Identity.
type Refresher interface {
	resource.ResourceWithConfigure
	// UpToDate asks Ironic what Read asks, and reports whether Read would return this state and private state as they are, without
	// diagnostics. The server calls it only if the note of NothingToDecide holds. false is always right: the server calls Read then.
	UpToDate(ctx context.Context, state tfsdk.State, private Private) bool
}

// EqualModels reports whether all fields of two models are equal. The fields must be attr.Values.
func EqualModels[T any](a, b *T) bool {
	left, right := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range left.NumField() {
		value, is := left.Field(i).Interface().(attr.Value)
		other, isToo := right.Field(i).Interface().(attr.Value)
		if !is || !isToo || !value.Equal(other) {
			return false
		}
	}
	return true
}

// answer is what Once has returned in an RPC.
type answer struct {
	known bool
	value any
	err   error
}

type answerKey struct{}

// WithAnswer returns a context for one RPC, in which Once asks only once.
func WithAnswer(ctx context.Context) context.Context {
	return context.WithValue(ctx, answerKey{}, &answer{})
}

// Once calls ask, or returns what it has returned before in the same RPC: Read does not ask again after UpToDate. An RPC may ask
// only one question in this way.
func Once[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	a, _ := ctx.Value(answerKey{}).(*answer)
	if a == nil {
		return ask()
	}
	if !a.known {
		value, err := ask()
		*a = answer{true, value, err}
	}
	value, _ := a.value.(T)
	return value, a.err
}
