package fakeoneview_test

import (
	"net/url"
	"slices"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

func TestTemplate_filters(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	blades, rack := fake.AddBlades(1), fake.AddRackServers(1)
	gold := fake.AddTemplate(fakeoneview.Template{Name: "gold", TypeURI: blades.TypeURI, GroupURI: blades.GroupURI})
	a := login(t, &fake)
	for filter, want := range map[string][]string{
		`"name='GOLD'"`: {"gold"},
		`"serverHardwareTypeUri='` + blades.TypeURI + `'"`: {"template-1", "gold"},
		`"serverHardwareTypeUri='` + rack.TypeURI + `'"`:   {"template-2"},
		`"enclosureGroupUri='` + blades.GroupURI + `'"`:    {"template-1", "gold"},
	} {
		got := a.get("/rest/server-profile-templates?" + url.Values{"filter": {filter}}.Encode())
		if !slices.Equal(got.names(), want) {
			t.Errorf("filter %s = %v, want %v", filter, got.names(), want)
		}
	}
	got := a.get(gold)
	if got.text1("macType") != "Physical" || got.member("boot", "manageBoot") != true || got.text1("affinity") != "Bay" {
		t.Errorf("template = %s", got.text)
	}
}

func TestTemplate_editChangesTheETag(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	uri := fake.AddRackServers(1).TemplateURI
	a := login(t, &fake)
	before := a.get(uri).text1("eTag")
	fake.EditTemplate(uri, func(document map[string]any) { document["macType"] = "Virtual" })
	got := a.get(uri)
	if got.text1("macType") != "Virtual" || got.text1("eTag") == before {
		t.Errorf("template = %s", got.text)
	}
}
