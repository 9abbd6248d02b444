package framework

import "context"

type plannedKey struct{}

// WithPlanned returns a context for an apply with the private state that its plan has returned. The framework passes it on to an Update, but not
// to a Create.
func WithPlanned(ctx context.Context, private Private) context.Context {
	return context.WithValue(ctx, plannedKey{}, private)
}

// Planned returns the private state that the plan of this apply has returned; nil if there is none.
func Planned(ctx context.Context) Private {
	private, _ := ctx.Value(plannedKey{}).(Private)
	return private
}
