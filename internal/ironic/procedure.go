package ironic

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// Collection is a kind of object that belongs to no single machine. Its value is the part of the URL that names it.
type Collection string

// The collections.
const (
	DeployTemplates Collection = "deploy_templates"
	Runbooks        Collection = "runbooks"
	InspectionRules Collection = "inspection_rules"
)

// exists returns an error of api.KindVersion if the API version in use does not have the collection. Ironic's own answer to that is a 404,
// as if an object did not exist.
func (in Collection) exists(ctx context.Context, c *Client) error {
	since, what := api.VersionDeployTemplates, "a deploy template"
	switch in {
	case DeployTemplates:
	case Runbooks:
		since, what = api.VersionRunbooks, "a runbook"
	case InspectionRules:
		since, what = api.VersionInspectionRules, "an inspection rule"
	}
	return c.Requires(ctx, since, what)
}

// Procedure is a deploy template or a runbook: steps under a name. Ironic replaces secrets in the arguments of the steps by Masked
// (reference/ironic.md#deploy-templates-and-runbooks).
type Procedure struct {
	UUID  string         `json:"uuid"`
	Name  string         `json:"name"`
	Steps []Step         `json:"steps"`
	Extra map[string]any `json:"extra"`

	// Only runbooks have the following fields.
	Owner          string   `json:"owner"`
	Description    string   `json:"description"`
	Traits         []string `json:"traits"`
	Public         bool     `json:"public"`
	DisableRamdisk bool     `json:"disable_ramdisk"`
}

// Step is a step of a Procedure. Deploy templates have a priority, the highest first; runbooks have an order, the lowest first.
type Step struct {
	Interface string         `json:"interface"`
	Step      string         `json:"step"`
	Args      map[string]any `json:"args"`
	Priority  int64          `json:"priority"`
	Order     int64          `json:"order"`
}

// RunbookStep is a step as a request for a runbook has it.
type RunbookStep struct {
	Interface string `json:"interface"`
	Step      string `json:"step"`
	Args      any    `json:"args"`
	Order     int64  `json:"order"`
}

// InspectionRule is what Ironic does with a machine after its inspection, if the conditions hold.
type InspectionRule struct {
	UUID        string          `json:"uuid"`
	Description string          `json:"description"`
	Priority    int64           `json:"priority"`
	Phase       string          `json:"phase"`
	Sensitive   bool            `json:"sensitive"`
	Conditions  []RuleOperation `json:"conditions"` // nil if the rule is sensitive
	Actions     []RuleOperation `json:"actions"`    // nil if the rule is sensitive
	UpdatedAt   string          `json:"updated_at"` // empty if the rule was never changed
}

// RuleOperation is a condition or an action of an InspectionRule.
type RuleOperation struct {
	Op       string `json:"op"`
	Args     any    `json:"args"`
	Loop     any    `json:"loop,omitempty"`
	Multiple string `json:"multiple,omitempty"` // of a condition with a loop
}

// CreateIn creates an object in a collection. The body must have a UUID, with which CreateIn finds out whether the object exists if the
// answer is lost. It returns the answer.
func CreateIn[T any](ctx context.Context, c *Client, in Collection, id string, body map[string]any) (*T, error) {
	return create[T](ctx, c, string(in), id, body)
}

// ReadIn reads an object of a collection by UUID or, where the collection has names, by name.
func ReadIn[T any](ctx context.Context, c *Client, in Collection, ref string) (*T, error) {
	if err := in.exists(ctx, c); err != nil {
		return nil, err
	}
	found := new(T)
	if err := c.Request(ctx, http.MethodGet, string(in)+"/"+url.PathEscape(ref), nil, found); err != nil {
		return nil, err
	}
	return found, nil
}

// ListIn lists the objects of a collection.
func ListIn[T any](ctx context.Context, c *Client, in Collection) ([]T, error) {
	return api.List[T](ctx, c.Conn, string(in), string(in), nil)
}

// StreamIn yields the objects of a collection, while it reads the pages of their list. limit is the most objects that the reader wants; 0:
// all. id returns the UUID of an object.
func StreamIn[T any](ctx context.Context, c *Client, in Collection, limit int64, id func(*T) string) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if err := in.exists(ctx, c); err != nil {
			yield(nil, err)
			return
		}
		for object, err := range api.Stream(ctx, c.Conn, string(in), string(in), limited(url.Values{}, limit), id) {
			if !yield(object, err) {
				return
			}
		}
	}
}

// PatchIn applies edits to an object of a collection; an empty patch sends nothing.
func (c *Client) PatchIn(ctx context.Context, in Collection, id string, patch Patch) error {
	if len(patch) == 0 {
		return nil
	}
	return c.Request(ctx, http.MethodPatch, string(in)+"/"+id, patch.body(), nil)
}

// DeleteIn deletes an object of a collection. It succeeds if the object does not exist.
func (c *Client) DeleteIn(ctx context.Context, in Collection, id string) error {
	if err := in.exists(ctx, c); err != nil {
		return err
	}
	return c.remove(ctx, string(in)+"/"+id)
}

// SetRunbookTraits replaces the traits of a runbook (API 1.112).
func (c *Client) SetRunbookTraits(ctx context.Context, id string, traits []string) error {
	if traits == nil {
		traits = []string{}
	}
	return c.Request(ctx, http.MethodPut, string(Runbooks)+"/"+id+"/traits", map[string]any{"traits": traits}, nil)
}
