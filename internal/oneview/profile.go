package oneview

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Compliance says whether a profile still matches its template.
type Compliance string

// The values of Compliance. It is unknown for a profile without a link to a template.
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
	InProgress  bool   // the appliance has an operation in progress on it
	TaskURI     string // task of the present or last operation
	Created     time.Time
	ETag        string

	Document Document
}

// Document is the JSON of a profile. This package does not decode the members that it need not change.
type Document map[string]json.RawMessage

// Set sets a member to a string.
func (d Document) Set(key, value string) {
	text, err := json.Marshal(value)
	if err != nil {
		return // json.Marshal of a string does not fail
	}
	d[key] = text
}

// Text returns a member that is a string; "" for other types.
func (d Document) Text(key string) string {
	var text string
	_ = json.Unmarshal(d[key], &text) // fails if the member is not a string
	return text
}

// ProfileFilter selects server profiles. An empty field selects all.
type ProfileFilter struct {
	Name       string // without regard to case, as on the appliance
	NamePrefix string // likewise
}

// Deleting reports whether the appliance is deleting the profile, which can take minutes.
func (p *Profile) Deleting() bool { return p.InProgress && p.State == "Deleting" }

// ProfileLabel returns the name and URI of a server profile for messages.
func ProfileLabel(p *Profile) string { return p.Name + " (" + p.URI + ")" }

// UnmarshalJSON decodes the appliance's JSON. A null becomes the zero value.
func (p *Profile) UnmarshalJSON(content []byte) error {
	var whole Document
	if err := json.Unmarshal(content, &whole); err != nil {
		return err
	}
	var inProgress bool
	_ = json.Unmarshal(whole["inProgress"], &inProgress)
	*p = Profile{
		URI: profileCollection.canonical(whole.Text("uri")), Name: whole.Text("name"), Description: whole.Text("description"),
		HardwareURI: whole.Text("serverHardwareUri"),
		TemplateURI: whole.Text("serverProfileTemplateUri"), Compliance: Compliance(whole.Text("templateCompliance")),
		Status: whole.Text("status"),
		State:  whole.Text("state"), InProgress: inProgress, TaskURI: whole.Text("taskUri"), ETag: whole.Text("eTag"), Document: whole,
	}
	if created, err := time.Parse(time.RFC3339, whole.Text("created")); err == nil {
		p.Created = created
	}
	if p.Compliance == "" || p.TemplateURI == "" {
		p.Compliance = ComplianceUnknown
	}
	return nil
}

// Profile returns a server profile by its URI.
func (c *Client) Profile(ctx context.Context, uri string) (*Profile, error) {
	path, err := profileCollection.path(uri)
	if err != nil {
		return nil, fmt.Errorf("server profile: %w", err)
	}
	var p Profile
	if err := c.get(ctx, path, nil, &p); err != nil {
		return nil, fmt.Errorf("server profile %s: %w", path, err)
	}
	return &p, nil
}

// ListProfiles returns the server profiles that a filter selects.
func (c *Client) ListProfiles(ctx context.Context, filter ProfileFilter) ([]Profile, error) {
	filters := slices.Concat(equals("name", filter.Name), begins("name", filter.NamePrefix))
	all, err := list[Profile](ctx, c, profileCollection, filters)
	if err != nil {
		return nil, err
	}
	prefix := strings.ToLower(filter.NamePrefix)
	return kept(all, func(p *Profile) bool {
		return fits(p.Name, filter.Name) && strings.HasPrefix(strings.ToLower(p.Name), prefix)
	}), nil
}

// Preview describes the changes that would make a profile comply with its template.
type Preview struct {
	IsOnlineUpdate   bool     `json:"isOnlineUpdate"`
	AutomaticUpdates []string `json:"automaticUpdates"`
	ManualUpdates    []string `json:"manualUpdates"`
}

// CompliancePreview returns the changes that would make a linked profile comply with its template.
func (c *Client) CompliancePreview(ctx context.Context, profileURI string) (Preview, error) {
	path, err := profileCollection.path(profileURI)
	if err != nil {
		return Preview{}, fmt.Errorf("server profile: %w", err)
	}
	var p Preview
	if err := c.get(ctx, path+"/compliance-preview", nil, &p); err != nil {
		return Preview{}, fmt.Errorf("compliance of server profile %s: %w", path, err)
	}
	return p, nil
}

// The methods below change something. Each sends its request once: callers must read the hardware again before the next try. They
// return the URI of the task, or "" if the operation has ended already.

// PostProfile creates a profile.
func (c *Client) PostProfile(ctx context.Context, draft Document) (taskURI string, err error) {
	return c.operate(ctx, request{method: http.MethodPost, path: "/rest/" + string(profileCollection), body: draft})
}

// PutProfile replaces a profile, if its eTag still equals match.
func (c *Client) PutProfile(ctx context.Context, uri string, changed Document, match string) (taskURI string, err error) {
	path, err := profileCollection.path(uri)
	if err != nil {
		return "", err
	}
	return c.operate(ctx, request{method: http.MethodPut, path: path, body: changed, match: match})
}

// Comply applies the template that a profile is linked to, if the profile's eTag still equals match.
func (c *Client) Comply(ctx context.Context, uri, match string) (taskURI string, err error) {
	path, err := profileCollection.path(uri)
	if err != nil {
		return "", err
	}
	patch := []map[string]string{{"op": "replace", "path": "/templateCompliance", "value": string(Compliant)}}
	return c.operate(ctx, request{method: http.MethodPatch, path: path, body: patch, match: match})
}

// DeleteProfile deletes a profile, if its eTag still equals match.
func (c *Client) DeleteProfile(ctx context.Context, uri, match string) (taskURI string, err error) {
	path, err := profileCollection.path(uri)
	if err != nil {
		return "", err
	}
	return c.operate(ctx, request{method: http.MethodDelete, path: path, match: match})
}

// PowerOff switches server hardware off at once (PressAndHold). It does not ask an operating system to shut down, because the server
// may have none.
func (c *Client) PowerOff(ctx context.Context, hardwareURI string) (taskURI string, err error) {
	path, err := hardwareCollection.path(hardwareURI)
	if err != nil {
		return "", err
	}
	body := map[string]any{"powerState": PowerOff, "powerControl": "PressAndHold"}
	return c.operate(ctx, request{method: http.MethodPut, path: path + "/powerState", body: body})
}

// operate sends a request that starts a task.
func (c *Client) operate(ctx context.Context, r request) (taskURI string, err error) {
	got, err := c.send(ctx, r)
	if err != nil {
		return "", err
	}
	uri, err := taskOf(got)
	if err != nil && got.status != http.StatusAccepted {
		return "", nil
	}
	return uri, err
}
