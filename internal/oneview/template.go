package oneview

import (
	"context"
	"errors"
)

// Template is a server profile template.
type Template struct {
	URI             string
	Name            string
	Description     string
	HardwareTypeURI string // the only type of server hardware that it fits
	GroupURI        string // the only enclosure group that it fits; empty: rack servers
	MACType         string // Physical, Virtual or UserDefined
	ManageBoot      bool   // its profiles set the order of boot devices
	Status          string // OK, Warning, Critical, Disabled, Unknown
	ETag            string
}

// TemplateFilter selects server profile templates; empty fields do not select.
type TemplateFilter struct {
	Name, HardwareTypeURI, GroupURI string
}

// Template returns a server profile template by its URI.
func (c *Client) Template(ctx context.Context, uri string) (*Template, error) {
	return nil, errors.ErrUnsupported
}

// ListTemplates returns the server profile templates that a filter selects.
func (c *Client) ListTemplates(ctx context.Context, filter TemplateFilter) ([]Template, error) {
	return nil, errors.ErrUnsupported
}
