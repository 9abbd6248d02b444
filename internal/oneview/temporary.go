package oneview

import (
	"context"
	"errors"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Purpose is what a temporary profile is for.
type Purpose string

// What needs a profile for a while.
const (
	Cleaning   Purpose = "Cleaning"
	Inspecting Purpose = "Inspecting"
)

// Temporary gives a node's hardware a profile for a while, unless it has one of ours. release takes it away again, but only
// a temporary one: that of an earlier run that died is found again. release is never nil.
func (p *Pool) Temporary(ctx context.Context, node *ironic.Node, purpose Purpose, limit time.Duration) (release func(context.Context) error, err error) {
	return func(context.Context) error { return nil }, errors.ErrUnsupported
}
