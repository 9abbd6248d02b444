package oneview

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
)

// differences says where a profile differs from its template. Of a linked profile the appliance says it, in its words. One that
// is not linked, as those are that Ironic's former driver made, is compared here with what the template would make now.
func (p *Pool) differences(ctx context.Context, profile *Profile, templateURI string) ([]string, error) {
	var refused *StatusError
	if profile.TemplateURI != "" {
		if profile.Compliance != NonCompliant {
			return nil, nil
		}
		found, err := p.OneView.compliancePreview(ctx, profile.URI)
		if errors.As(err, &refused) {
			return nil, nil // it says that there are differences, and not which
		}
		return slices.Concat(found.AutomaticUpdates, found.ManualUpdates), err
	}
	if templateURI == "" {
		return nil, nil
	}
	wanted, err := p.OneView.newProfile(ctx, templateURI)
	if errors.As(err, &refused) {
		return nil, nil // there is no such template any more
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, key := range compared() {
		if !holds(decoded(profile.document[key]), decoded(wanted[key])) {
			found = append(found, key)
		}
	}
	return found, nil
}

// compared are the parts of a profile that a template alone determines. Storage is not among them: the appliance fills in
// most of it.
func compared() []string {
	return []string{
		"serverHardwareTypeUri", "enclosureGroupUri", "macType", "wwnType", "serialNumberType", "hideUnusedFlexNics",
		"connections", "connectionSettings", "boot", "bootMode", "bios", "firmware",
	}
}

func decoded(raw json.RawMessage) any {
	var value any
	_ = json.Unmarshal(raw, &value) // missing is null
	return value
}

// holds reports whether all that is wanted is there. What the appliance has filled in where nothing was wanted does not matter,
// nor does how it checks compliance.
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
		return ok && (text == wanted || sameURI(text, wanted)) || (have == nil && wanted == "")
	}
	return reflect.DeepEqual(have, wanted)
}
