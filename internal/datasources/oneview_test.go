package datasources_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// texts checks a list of texts.
func texts(values ...string) knownvalue.Check {
	checks := []knownvalue.Check{}
	for _, value := range values {
		checks = append(checks, knownvalue.StringExact(value))
	}
	return knownvalue.ListExact(checks)
}

func TestFakeServerHardware_byAnyKey(t *testing.T) {
	s := site.StartFake(t, nil)
	o := site.StartOneView(t, nil, 12)
	third := o.Hardware(3)
	config := s.Provider(o.Setting())
	var checks []statecheck.StateCheck
	for by, value := range map[string]string{
		"name": strings.ToUpper(third.Name), "serial_number": third.SerialNumber,
		"mac": strings.ReplaceAll(strings.ToLower(third.MACs[1]), ":", "-"),
	} {
		config += data("metal_oneview_server_hardware", by, fmt.Sprintf("%s = %q", by, value))
		address := "data.metal_oneview_server_hardware." + by
		checks = append(checks, is(address, "uri", knownvalue.StringExact(third.URI)), is(address, "uris", texts(third.URI)),
			is(address, by, knownvalue.StringExact(value)))
	}
	var macs []string
	for _, mac := range third.MACs {
		macs = append(macs, strings.ToLower(mac))
	}
	test(t, config, "", append(checks, is("data.metal_oneview_server_hardware.name", "servers",
		knownvalue.MapExact(map[string]knownvalue.Check{
			third.URI: knownvalue.ObjectExact(map[string]knownvalue.Check{
				"name": text(third.Name), "serial_number": text(third.SerialNumber), "model": text(third.Model),
				"state": text("NoProfileApplied"), "status": text("OK"),
				"power_state": text("Off"), "server_profile_uri": knownvalue.Null(), "server_hardware_type_uri": text(third.TypeURI),
				"enclosure_group_uri": text(third.GroupURI), "macs": texts(macs...), "management_addresses": texts(third.ILOAddress),
			}),
		})))...)
}

func TestFakeServerHardware_filters(t *testing.T) {
	s := site.StartFake(t, nil)
	o := site.StartOneView(t, &fakeoneview.Server{PageLimit: 3}, 7)
	rack := o.Fake.AddRackServers(2)
	o.Take(2)
	o.Take(5)
	free := slices.Concat(o.Blades.Hardware[:1], o.Blades.Hardware[2:4], o.Blades.Hardware[5:])
	blades := fmt.Sprintf("server_hardware_type_uri = %q\n  enclosure_group_uri = %q", o.Blades.TypeURI, o.Blades.GroupURI)
	const kind = "metal_oneview_server_hardware"
	test(t, s.Provider(o.Setting())+data(kind, "all")+data(kind, "blades", blades)+data(kind, "free", blades, "free = true")+
		data(kind, "used", blades, "free = false")+
		data(kind, "rack", fmt.Sprintf("server_hardware_type_uri = %q", rack.TypeURI))+
		data(kind, "none", `server_hardware_type_uri = "/rest/server-hardware-types/none"`), "",
		is("data."+kind+".all", "uris", knownvalue.ListSizeExact(9)), is("data."+kind+".all", "uri", knownvalue.Null()),
		is("data."+kind+".blades", "uris", texts(o.Blades.Hardware...)),
		is("data."+kind+".free", "uris", texts(free...)),
		is("data."+kind+".used", "uris", texts(o.Blades.Hardware[1], o.Blades.Hardware[4])),
		is("data."+kind+".used", "servers", knownvalue.MapPartial(map[string]knownvalue.Check{
			o.Blades.Hardware[1]: knownvalue.ObjectPartial(map[string]knownvalue.Check{
				"server_profile_uri": knownvalue.StringExact(o.Hardware(2).ProfileURI), "state": knownvalue.StringExact("ProfileApplied"),
				"power_state": knownvalue.StringExact("On"),
			}),
		})),
		is("data."+kind+".rack", "uris", knownvalue.ListSizeExact(2)),
		is("data."+kind+".rack", "servers", knownvalue.MapPartial(map[string]knownvalue.Check{
			rack.Hardware[0]: knownvalue.ObjectPartial(map[string]knownvalue.Check{
				"enclosure_group_uri": knownvalue.Null(),
				"macs":                texts(),
			}),
		})),
		is("data."+kind+".none", "uris", texts()), is("data."+kind+".none", "uri", knownvalue.Null()),
	)
}

func TestFakeServerHardware_notFound(t *testing.T) {
	s := site.StartFake(t, nil)
	o := site.StartOneView(t, nil, 2)
	o.Take(1)
	for name, tt := range map[string]struct{ settings, want string }{
		"name": {
			`name = "Encl9, bay 1"`,
			`OneView has no server hardware with name "Encl9, bay 1". It has "Encl1, bay 1", "Encl1, bay 2".`,
		},
		"beginning":     {`name = "Encl1, bay"`, `OneView has no server hardware with name "Encl1, bay"`},
		"wildcard":      {`name = "Encl1, bay %"`, `OneView has no server hardware with name "Encl1, bay %"`},
		"serial number": {`serial_number = "X"`, `OneView has no server hardware with serial_number "X"`},
		"mac":           {`mac = "52:00:00:00:00:01"`, `OneView has no server hardware with mac "52:00:00:00:00:01"`},
		"taken": {
			"name = \"Encl1, bay 1\"\n  free = true",
			`OneView has no server hardware with name "Encl1, bay 1" and free = true`,
		},
		"quotes": {`name = "it's"`, "must have no quotes"},
		"empty":  {`name = ""`, "string length must be at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, s.Provider(o.Setting())+data("metal_oneview_server_hardware", "h", tt.settings), tt.want)
		})
	}
}

func TestFakeServerHardware_notFoundAmongMany(t *testing.T) {
	s := site.StartFake(t, nil)
	o := site.StartOneView(t, nil, 23)
	test(t, s.Provider(o.Setting())+data("metal_oneview_server_hardware", "h", `name = "Encl9, bay 1"`), ", and 3 more.")
}

func TestFakeServerProfileTemplate_found(t *testing.T) {
	s := site.StartFake(t, nil)
	o := site.StartOneView(t, nil, 1)
	rack := o.Fake.AddRackServers(1)
	second := o.Fake.AddTemplate(fakeoneview.Template{Name: "web", TypeURI: o.Blades.TypeURI, GroupURI: o.Blades.GroupURI})
	o.Fake.EditTemplate(second, func(document map[string]any) {
		document["description"], document["macType"], document["boot"] = "for the web", "Virtual", map[string]any{"manageBoot": false}
	})
	const kind, address = "metal_oneview_server_profile_template", "data.metal_oneview_server_profile_template."
	test(t, s.Provider(o.Setting())+data(kind, "name", `name = "WEB"`)+
		data(kind, "rack", fmt.Sprintf("server_hardware_type_uri = %q", rack.TypeURI))+
		data(kind, "both", fmt.Sprintf("name = \"template-1\"\n  server_hardware_type_uri = %q\n  enclosure_group_uri = %q",
			o.Blades.TypeURI, o.Blades.GroupURI)), "",
		is(address+"name", "uri", text(second)), is(address+"name", "name", text("web")),
		is(address+"name", "description", text("for the web")),
		is(address+"name", "mac_type", text("Virtual")), is(address+"name", "manages_boot", knownvalue.Bool(false)),
		is(address+"name", "server_hardware_type_uri", text(o.Blades.TypeURI)),
		is(address+"name", "enclosure_group_uri", text(o.Blades.GroupURI)),
		is(address+"name", "status", text("OK")),
		is(address+"rack", "uri", text(rack.TemplateURI)), is(address+"rack", "enclosure_group_uri", knownvalue.Null()),
		is(address+"rack", "description", knownvalue.Null()),
		is(address+"both", "uri", text(o.Blades.TemplateURI)), is(address+"both", "mac_type", text("Physical")),
		is(address+"both", "manages_boot", knownvalue.Bool(true)),
	)
}

func TestFakeServerProfileTemplate_notFound(t *testing.T) {
	s := site.StartFake(t, nil)
	o := site.StartOneView(t, nil, 1)
	second := o.Fake.AddTemplate(fakeoneview.Template{Name: "web", TypeURI: o.Blades.TypeURI, GroupURI: o.Blades.GroupURI})
	for name, tt := range map[string]struct{ settings, want string }{
		"none": {`name = "missing"`, `OneView has no server profile template with name "missing". It has "template-1", "web".`},
		"several": {fmt.Sprintf("enclosure_group_uri = %q", o.Blades.GroupURI), "OneView has 2: template-1 (" + o.Blades.TemplateURI +
			"), web (" + second + "). Give the name"},
		"any":    {"", "OneView has 2"},
		"quotes": {`name = "it's"`, "must have no quotes"},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, s.Provider(o.Setting())+data("metal_oneview_server_profile_template", "t", tt.settings), tt.want)
		})
	}
}

func TestFakeOneViewDataSources_withoutAppliance(t *testing.T) {
	s := site.StartFake(t, nil)
	for _, kind := range []string{"metal_oneview_server_hardware", "metal_oneview_server_profile_template"} {
		t.Run(kind, func(t *testing.T) {
			test(t, s.Provider()+data(kind, "x"), "OneView is not configured")
		})
	}
}
