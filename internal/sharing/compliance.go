package sharing

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// differences returns the differences between a profile and its template. For a linked profile the appliance returns them as text.
// Profiles of Ironic's former driver are not linked: differences compares them with a new profile of the template.
func (p *Pool) differences(ctx context.Context, profile *oneview.Profile, templateURI string) ([]string, error) {
	var refused *oneview.StatusError
	if profile.TemplateURI != "" {
		if profile.Compliance != oneview.NonCompliant {
			return nil, nil
		}
		found, err := p.OneView.CompliancePreview(ctx, profile.URI)
		if errors.As(err, &refused) {
			return nil, nil // the appliance says that there are differences, but does not list them
		}
		return slices.Concat(found.AutomaticUpdates, found.ManualUpdates), err
	}
	if templateURI == "" {
		return nil, nil
	}
	wanted, err := p.OneView.NewProfile(ctx, templateURI)
	if errors.As(err, &refused) {
		return nil, nil // the template does not exist any more
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, key := range compared() {
		if !holds(decoded(profile.Document[key]), decoded(wanted[key])) {
			found = append(found, key)
		}
	}
	return found, nil
}

// compared are the parts of a profile that a template alone determines. Storage is not one of them, because the appliance fills
// in most of it.
func compared() []string {
	return []string{
		"serverHardwareTypeUri", "enclosureGroupUri", "macType", "wwnType", "serialNumberType", "hideUnusedFlexNics",
		"connections", "connectionSettings", "boot", "bootMode", "bios", "firmware",
	}
}

func decoded(raw json.RawMessage) any {
	var value any
	_ = json.Unmarshal(raw, &value) // a missing part counts as null
	return value
}

// holds reports whether a profile has all the wanted values. It ignores values that the appliance has filled in, and the settings
// of the compliance check.
func holds(have, wanted any) bool {
	switch wanted := wanted.(type) {
	case nil:
		return true
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for _, key := range slices.Sorted(maps.Keys(wanted)) {
			if key != "complianceControl" && key != "reapplyState" && !holds(have[key], wanted[key]) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		return ok && slices.EqualFunc(have, wanted, holds)
	case string:
		text, ok := have.(string)
		return ok && (text == wanted || oneview.SameURI(text, wanted)) || (have == nil && wanted == "")
	}
	return reflect.DeepEqual(have, wanted)
}
