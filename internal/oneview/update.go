package oneview

import (
	"context"
	"errors"
	"time"
)

// UpdateOptions says what shall become of the profile that a node has.
type UpdateOptions struct {
	NodeID      string
	ProfileURI  string
	Name        string        // empty: as it is
	TemplateURI string        // empty: as it is. Another template is applied to the hardware
	Reapply     bool          // apply the template to the hardware if the profile does not comply
	Limit       time.Duration // zero: DefaultLimit
}

// Update changes the profile of a node in place.
func (p *Pool) Update(ctx context.Context, o UpdateOptions) (*Applied, error) {
	return nil, errors.ErrUnsupported
}
