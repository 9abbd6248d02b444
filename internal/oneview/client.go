// Package oneview talks to an HPE OneView appliance, and shares its server hardware between Ironic and other users of
// OneView: it knows whose hardware is, gives a node a server profile and takes it away again. It knows nothing of
// Terraform.
package oneview

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
)

// Client talks to one appliance. It is safe for concurrent use, and all its users share one session.
type Client struct {
	cfg  Config
	base *url.URL
	http *http.Client

	mu sync.Mutex
}

// Known reports whether the configuration is complete.
func (c *Client) Known() bool { return c.cfg.Unknown == "" }

// Version returns the X-API-Version in use.
func (c *Client) Version(ctx context.Context) (int, error) { return 0, errors.ErrUnsupported }

// Close logs out. The client can be used again afterwards, which logs in anew.
func (c *Client) Close(ctx context.Context) error { return errors.ErrUnsupported }
