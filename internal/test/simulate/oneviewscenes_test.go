package simulate_test

import "github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"

// appliance adds an appliance with free blades.
func appliance(s *site) {
	s.appliance = &fakeoneview.Server{StepTime: s.fake.StepTime, Username: "metal", Password: secret}
	s.appliance.AddBlades(3)
}

// blade is a host on shared hardware.
func blade() configuration {
	hardware := func(attribute string) reference { return reference{"data.metal_oneview_server_hardware.a", attribute} }
	template := func(attribute string) reference {
		return reference{"data.metal_oneview_server_profile_template.a", attribute}
	}
	return configuration{
		"data.metal_oneview_server_hardware.a": {"name": "Encl1, bay 1"},
		"data.metal_oneview_server_profile_template.a": {
			"server_hardware_type_uri": hardware("server_hardware_type_uri"), "enclosure_group_uri": hardware("enclosure_group_uri"),
		},
		"metal_host.a": {
			"name": "a", "driver": "fake-hardware", "resource_class": "baremetal", "target_state": "available", "automated_clean": false,
			"driver_info": object{"server_hardware_uri": hardware("uri"), "dynamic_allocation": "true"},
			"capabilities": object{
				"server_hardware_type_uri": template("server_hardware_type_uri"), "server_profile_template_uri": template("uri"),
				"enclosure_group_uri": template("enclosure_group_uri"),
			},
		},
	}
}

// profiled is a blade with a server profile.
func profiled(name string) configuration {
	return blade().plus(one("metal_oneview_profile.a", object{
		"node_id": reference{"metal_host.a", "id"}, "name": name,
		"server_hardware_uri":         reference{"data.metal_oneview_server_hardware.a", "uri"},
		"server_profile_template_uri": reference{"data.metal_oneview_server_profile_template.a", "uri"},
		"timeouts":                    object{"create": "40m", "update": "40m", "delete": "40m"},
	}))
}

// oneviewScenes are steps on hardware that is shared with users of OneView.
func oneviewScenes() []scene {
	block := object{
		"oneview": object{
			"endpoint": "http://" + oneviewHost, "username": "metal", "password": secret, "domain": "LOCAL", "api_version": 2000,
		},
	}
	deployed := profiled("one").plus(one("metal_deployment.a", object{
		"node_id": reference{"metal_oneview_profile.a", "node_id"}, "image": imageAt("http://images.test/v1"),
	}))
	selected := func(settings object) configuration {
		return one("data.metal_oneview_server_hardware.b", settings)
	}
	hardware := func(attribute string) pick {
		return pick{reference{"data.metal_oneview_server_hardware.a", "servers"}, []any{0, attribute}}
	}
	kinds := object{
		"server_hardware_type_uri": hardware("server_hardware_type_uri"), "enclosure_group_uri": hardware("enclosure_group_uri"),
		"free": true,
	}
	machine := object{"mac": "94:18:82:00:00:00", "serial_number": hardware("serial_number")}
	of := func(name string, from, to configuration, act act) scene {
		return scene{name: name, from: []configuration{from}, to: to, block: block, prepare: appliance, act: act}
	}
	taken := of("metal oneview sync", blade(), blade(), command("oneview", "sync", "--once"))
	taken.before = func(s *site) { s.appliance.TakeHardware(s.appliance.Hardware()[0].URI) }
	return []scene{
		of("profile and deploy", blade(), deployed, nil),
		of("rename a profile", profiled("one"), profiled("two"), nil),
		of("undeploy and free a blade", deployed, blade(), nil),
		of("hardware of a kind", blade(), blade().plus(selected(kinds)), nil),
		of("hardware by its cards", blade(), blade().plus(selected(machine)), nil),
		of("metal oneview status", profiled("one"), profiled("one"), command("oneview", "status")),
		taken,
	}
}
