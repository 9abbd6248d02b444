package oneview

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
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
	TaskURI     string // what it is doing, or did last
	Created     time.Time
	ETag        string

	document document
}

// document is the JSON of a profile, of which only what has to be changed is looked at.
type document map[string]json.RawMessage

// set gives a member a value; text is all that ever needs one.
func (d document) set(key, value string) {
	text, err := json.Marshal(value)
	if err != nil {
		return // text always becomes JSON
	}
	d[key] = text
}

// text is a member that is text; anything else is "".
func (d document) text(key string) string {
	var text string
	_ = json.Unmarshal(d[key], &text) // null, or not text
	return text
}

// ProfileFilter selects server profiles; empty fields do not select.
type ProfileFilter struct {
	Name       string // compared without regard to case, as the appliance does
	NamePrefix string // what the name begins with, likewise
}

// ProfileLabel is how messages call a server profile: by its name, with the URI.
func ProfileLabel(p *Profile) string { return p.Name + " (" + p.URI + ")" }

// UnmarshalJSON reads the appliance's representation; what it has as null is zero.
func (p *Profile) UnmarshalJSON(content []byte) error {
	var whole document
	if err := json.Unmarshal(content, &whole); err != nil {
		return err
	}
	var inProgress bool
	_ = json.Unmarshal(whole["inProgress"], &inProgress)
	*p = Profile{
		URI: profileCollection.canonical(whole.text("uri")), Name: whole.text("name"), Description: whole.text("description"), HardwareURI: whole.text("serverHardwareUri"),
		TemplateURI: whole.text("serverProfileTemplateUri"), Compliance: Compliance(whole.text("templateCompliance")), Status: whole.text("status"),
		State: whole.text("state"), InProgress: inProgress, TaskURI: whole.text("taskUri"), ETag: whole.text("eTag"), document: whole,
	}
	if created, err := time.Parse(time.RFC3339, whole.text("created")); err == nil {
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

// preview is what it would take to make a profile comply with its template.
type preview struct {
	IsOnlineUpdate   bool     `json:"isOnlineUpdate"`
	AutomaticUpdates []string `json:"automaticUpdates"`
	ManualUpdates    []string `json:"manualUpdates"`
}

// compliancePreview tells what it would take to make a linked profile comply.
func (c *Client) compliancePreview(ctx context.Context, profileURI string) (preview, error) {
	path, err := profileCollection.path(profileURI)
	if err != nil {
		return preview{}, fmt.Errorf("server profile: %w", err)
	}
	var p preview
	if err := c.get(ctx, path+"/compliance-preview", nil, &p); err != nil {
		return preview{}, fmt.Errorf("compliance of server profile %s: %w", path, err)
	}
	return p, nil
}

// The requests below change something. Each is sent once: whoever calls them looks at the hardware again before the next
// try. They return the task, or "" if all is done already.

// postProfile creates a profile.
func (c *Client) postProfile(ctx context.Context, draft document) (taskURI string, err error) {
	return c.operate(ctx, request{method: http.MethodPost, path: "/rest/" + string(profileCollection), body: draft})
}

// putProfile replaces a profile, if its eTag still is match.
func (c *Client) putProfile(ctx context.Context, uri string, changed document, match string) (taskURI string, err error) {
	path, err := profileCollection.path(uri)
	if err != nil {
		return "", err
	}
	return c.operate(ctx, request{method: http.MethodPut, path: path, body: changed, match: match})
}

// comply applies the template that a profile is linked to, if the profile's eTag still is match.
func (c *Client) comply(ctx context.Context, uri, match string) (taskURI string, err error) {
	path, err := profileCollection.path(uri)
	if err != nil {
		return "", err
	}
	patch := []map[string]string{{"op": "replace", "path": "/templateCompliance", "value": string(Compliant)}}
	return c.operate(ctx, request{method: http.MethodPatch, path: path, body: patch, match: match})
}

// deleteProfile deletes a profile, if its eTag still is match.
func (c *Client) deleteProfile(ctx context.Context, uri, match string) (taskURI string, err error) {
	path, err := profileCollection.path(uri)
	if err != nil {
		return "", err
	}
	return c.operate(ctx, request{method: http.MethodDelete, path: path, match: match})
}

// powerOff switches server hardware off at once, as holding its button does: nothing that matters runs on it, and waiting
// for an operating system that may not be there leads nowhere.
func (c *Client) powerOff(ctx context.Context, hardwareURI string) (taskURI string, err error) {
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

// Marks. A profile that is made here says in its description for which node, and under what name: that is how it is known
// again when its maker died before it could tell anybody. A copy that somebody makes of it has another name, and so a mark that
// is none.

// mark is the mark of a profile.
func mark(name, nodeID string) string {
	return fmt.Sprintf("[terraform-provider-metal: %s for Ironic node %s]", name, nodeID)
}

// marked is a description with the mark of a profile, in the place of the one of its former name.
func marked(description, formerName, name, nodeID string) string {
	description = strings.TrimSpace(strings.ReplaceAll(description, mark(formerName, nodeID), ""))
	return strings.TrimSpace(description + " " + mark(name, nodeID))
}

// markPattern finds the node in a mark, uuidPattern tells a node's UUID from its name.
var (
	markPattern = regexp.MustCompile(`\[terraform-provider-metal: .* for Ironic node ([0-9a-f-]{36})\]`)
	uuidPattern = regexp.MustCompile(`^[0-9a-fA-F-]{36}$`)
)

// nodeID is the UUID of the node that a profile carries the mark of having been made here for; empty if there is none.
func (p *Profile) nodeID() string {
	if found := markPattern.FindStringSubmatch(p.Description); found != nil && p.madeFor(found[1]) {
		return found[1]
	}
	return ""
}

// madeFor reports whether a profile carries the mark of having been made here for a node.
func (p *Profile) madeFor(nodeID string) bool {
	return nodeID != "" && strings.Contains(p.Description, mark(p.Name, nodeID))
}
