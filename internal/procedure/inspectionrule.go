package procedure

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// Inspection rules have neither a name nor extra, so a run marks them by their UUID: it is computed from the content. Thus the next
// run finds the rule that a killed run has made.
const (
	ruleSalt   = "terraform-provider-metal inspection rule"
	ruleRounds = 600_000 // makes it costly to guess a secret of a rule from its UUID
	ruleTries  = 8       // rules that began with the same content and were changed since
)

// ruleID returns the UUID of the nth rule that was created with a content.
func ruleID(content map[string]any, n int) (string, error) {
	text, err := json.Marshal([]any{content, n})
	if err != nil {
		return "", err
	}
	b, err := pbkdf2.Key(sha256.New, string(text), []byte(ruleSalt), ruleRounds, 16)
	if err != nil {
		return "", err
	}
	return ironic.UUID8([16]byte(b)), nil
}

// errSameRule says that two resources would manage one rule.
var errSameRule = errors.New("another resource of this configuration creates the same inspection rule. Remove one of them, or give them " +
	"different descriptions")

type createdRules struct{ ids notes.Set[string] }

func newCreatedRules(*machine.Site) *createdRules { return &createdRules{} }

// CreateRule creates an inspection rule. If there is a rule with the UUID that belongs to this content, and it was never changed,
// CreateRule takes it over: a killed run has created it, or another configuration that has the same rule.
func CreateRule(ctx context.Context, site *machine.Site, content map[string]any) (machine.Made, error) {
	rules := &machine.Kept(site, newCreatedRules).ids
	for n := range ruleTries {
		id, err := ruleID(content, n)
		if err != nil {
			return machine.Made{}, err
		}
		if !rules.Add(id) {
			return machine.Made{}, errSameRule
		}
		request := maps.Clone(content)
		request["uuid"] = id
		rule, err := ironic.CreateIn[ironic.InspectionRule](ctx, site.Ironic, ironic.InspectionRules, id, request)
		if err == nil {
			return machine.Made{UUID: rule.UUID}, nil
		}
		rules.Remove(id)
		if !api.IsStatus(err, http.StatusConflict, "") {
			return machine.Made{}, err
		}
		found, err := ironic.ReadIn[ironic.InspectionRule](ctx, site.Ironic, ironic.InspectionRules, id)
		if err != nil {
			return machine.Made{}, err
		}
		if found.UpdatedAt != "" {
			continue
		}
		if !rules.Add(id) {
			return machine.Made{}, errSameRule
		}
		site.Run.TookOver(notes.MarkCreation, id)
		return machine.Made{UUID: id, Told: []decide.Notice{ruleTakenOver(id)}}, nil
	}
	return machine.Made{}, fmt.Errorf("%d inspection rules were created with this content and changed since. Give this one another "+
		"description", ruleTries)
}

// UpdateRule sends what differs between two contents of an inspection rule.
func UpdateRule(ctx context.Context, site *machine.Site, id string, before, after map[string]any) error {
	return site.Ironic.PatchIn(ctx, ironic.InspectionRules, id, editsBetween(before, after))
}

// FindRule returns the inspection rule with a UUID or, if no other rule has it, a description.
func FindRule(ctx context.Context, site *machine.Site, ref string) (*ironic.InspectionRule, error) {
	if ironic.IsUUID(ref) {
		return ironic.ReadIn[ironic.InspectionRule](ctx, site.Ironic, ironic.InspectionRules, ref)
	}
	if err := site.Ironic.Requires(ctx, api.VersionInspectionRules, "an inspection rule"); err != nil {
		return nil, err
	}
	all, err := ironic.ListIn[ironic.InspectionRule](ctx, site.Ironic, ironic.InspectionRules)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(rule ironic.InspectionRule) bool { return rule.Description != ref })
	switch len(all) {
	case 0:
		return nil, fmt.Errorf("no inspection rule has the description %q. Import it by its UUID", ref)
	case 1:
		return &all[0], nil
	}
	var ids []string
	for _, rule := range all {
		ids = append(ids, rule.UUID)
	}
	return nil, fmt.Errorf("%d inspection rules have the description %q: %s. Import one by its UUID", len(all), ref,
		strings.Join(ids, ", "))
}

// ruleTakenOver says that a creation has taken over a rule that another run has created.
func ruleTakenOver(id string) decide.Notice {
	return decide.Warn(nil, "Interrupted creation is continued",
		fmt.Sprintf("Another run has created rule %s with exactly this content, and this state did not have it. The apply has taken it "+
			"over. If another configuration or resource manages the rule, remove it from one of the two, or give them different "+
			"descriptions.", id))
}
