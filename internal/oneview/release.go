package oneview

import (
	"context"
	"errors"
	"time"
)

// Release takes the profile away from a node's hardware, if Ironic uses it: it switches the server off, deletes the
// profile, and tells Ironic. profileURI is the profile that the caller knows of; it may be empty. A limit of zero is
// DefaultLimit. Release of what is released already does nothing.
func (p *Pool) Release(ctx context.Context, nodeID, profileURI string, limit time.Duration) error {
	return errors.ErrUnsupported
}
