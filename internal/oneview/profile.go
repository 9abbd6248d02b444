package oneview

import (
	"context"
	"encoding/json"
	"errors"
)

// Compliance says whether a profile still is what its template says.
type Compliance string

// How a profile relates to its template. Of a profile that is not linked to one nothing is known.
const (
	Compliant         Compliance = "Compliant"
	NonCompliant      Compliance = "NonCompliant"
	ComplianceUnknown Compliance = "Unknown"
)

// Profile is a server profile.
type Profile struct {
	URI         string
	Name        string
	Description string
	HardwareURI string // the server hardware that it is applied to; empty: none
	TemplateURI string // the template that it is linked to; empty: none
	Compliance  Compliance
	Status      string // OK, Warning, Critical, Disabled, Unknown
	State       string // Normal, Creating and more
	InProgress  bool   // the appliance is at work on it
	TaskURI     string // what it is doing
	ETag        string

	raw map[string]json.RawMessage // all of it, for changes: what is not changed goes back as it came
}

// ProfileFilter selects server profiles; empty fields do not select.
type ProfileFilter struct {
	Name string // compared without regard to case, as the appliance does
}

// Profile returns a server profile by its URI.
func (c *Client) Profile(ctx context.Context, uri string) (*Profile, error) {
	return nil, errors.ErrUnsupported
}

// ListProfiles returns the server profiles that a filter selects.
func (c *Client) ListProfiles(ctx context.Context, filter ProfileFilter) ([]Profile, error) {
	return nil, errors.ErrUnsupported
}
