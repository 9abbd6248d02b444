package provider_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const needsPort = "Network boot needs a port"

func withAll(base object, more ...object) object {
	all := object{}
	for _, o := range append([]object{base}, more...) {
		for key, value := range o {
			all[key] = value
		}
	}
	return all
}

func TestPlan_networkBootNeedsPort(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	port := func(pxe any) object { return object{"ports": object{"52:54:00:00:00:01": object{"pxe_enabled": pxe}}} }
	ipmi := object{
		"name": "r1", "bmc": object{"address": "ipmi://192.0.2.1", "username": "root", "password": "x"},
		"target_state": "available",
	}
	redfish := withAll(ipmi, object{"bmc": object{
		"address": "redfish://192.0.2.1/redfish/v1/Systems/1", "username": "root",
		"password": "x",
	}})
	boot := func(name any) object { return object{"hardware_interfaces": object{"boot": name}} }
	for name, tt := range map[string]struct {
		host object
		want bool
	}{
		"ipmi, Ironic's default":             {ipmi, true},
		"ipmi, ipxe":                         {withAll(ipmi, boot("ipxe")), true},
		"ipmi, with a port":                  {withAll(ipmi, port(nil)), false},
		"ipmi, with a port that boots":       {withAll(ipmi, port(true)), false},
		"ipmi, with a port that boots not":   {withAll(ipmi, port(false)), true},
		"ipmi, with ports not known":         {withAll(ipmi, object{"ports": notKnown}), false},
		"ipmi, with a port not known":        {withAll(ipmi, port(notKnown)), false},
		"ipmi, the address not known":        {withAll(ipmi, object{"bmc": notKnown}), false},
		"ipmi, inspected by the agent":       {withAll(ipmi, object{"inspect": true}), true},
		"ipmi, manageable":                   {withAll(ipmi, object{"target_state": "manageable"}), false},
		"ipmi, manageable and inspected":     {withAll(ipmi, object{"target_state": "manageable", "inspect": true}), true},
		"ipmi, enrolled":                     {withAll(ipmi, object{"target_state": "enroll", "inspect": true}), false},
		"ipmi, not cleaned":                  {withAll(ipmi, object{"automated_clean": false}), false},
		"redfish, not inspected":             {redfish, true},
		"redfish, inspected by the BMC":      {withAll(redfish, object{"inspect": true}), false},
		"redfish, virtual media":             {withAll(redfish, boot("redfish-virtual-media")), false},
		"redfish, an interface not known":    {withAll(redfish, boot(notKnown)), false},
		"through the agent, without its BMC": {object{"name": "r1", "power_control": "agent", "target_state": "available"}, false},
	} {
		s.again()
		mentions(t, name, s.shown("metal_host", tt.host, nil), needsPort, tt.want)
	}
}

// A host that is in Ironic already has the ports that Ironic knows, and the boot interface that Ironic has chosen.
func TestPlan_networkBootOfExistingNode(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	config := object{"name": "r1", "driver": "fake-hardware", "target_state": "manageable", "hardware_interfaces": object{"boot": "ipxe"}}
	host, said := s.apply("metal_host", config, nil)
	if failed(said) {
		t.Fatal(describe(said))
	}
	id := s.text(host, "id")
	cleaned := withAll(config, object{"target_state": "available"})
	image := object{"node_id": id, "image": object{"url": "http://images.example.com/a.qcow2", "checksum": strings.Repeat("0", 64)}}
	iso := object{"node_id": id, "live_iso": object{"url": "http://images.example.com/a.iso"}}
	plans := func(what string, want bool) {
		t.Helper()
		s.again()
		host = s.read(host)
		mentions(t, "cleaning, "+what, s.shown("metal_host", cleaned, host), needsPort, want)
		s.again()
		mentions(t, "deployment, "+what, s.shown("metal_deployment", image, nil), needsPort, want)
		mentions(t, "adoption, "+what, s.shown("metal_deployment", object{"node_id": id, "adopt": true, "on_destroy": "forget"}, nil),
			needsPort, false)
		mentions(t, "live ISO, "+what, s.shown("metal_deployment", iso, nil), needsPort, want)
	}
	plans("without ports", true)
	s.again()
	s.shown("metal_host", withAll(cleaned, object{"ports": object{"52:54:00:00:00:01": object{}}}), host)
	mentions(t, "deployment, after a plan that adds a port", s.shown("metal_deployment", image, nil), needsPort, false)
	if status := s.call("POST", "/v1/ports", map[string]any{
		"node_uuid": id, "address": "52:54:00:00:00:01",
		"pxe_enabled": false,
	}); status != 201 {
		t.Fatal(status)
	}
	plans("with a port that boots not", true)
	if status := s.call("POST", "/v1/ports", map[string]any{"node_uuid": id, "address": "52:54:00:00:00:02"}); status != 201 {
		t.Fatal(status)
	}
	plans("with a port that boots", false)
	s.fake.Set(id, "boot_interface", "pxe")
	s.again()
	mentions(t, "a live ISO by PXE", s.shown("metal_deployment", iso, nil), "Boot interface boots no ISO", true)
	mentions(t, "an image by PXE", s.shown("metal_deployment", image, nil), "Boot interface boots no ISO", false)
}

// A raw image of a whole disk needs disk_format. Only a plan that writes the image looks at it.
func TestPlan_rawImageNeedsFormat(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	s.fake.AddFleet(1, "baremetal")
	looks := 0
	images := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		looks++
		disk := make([]byte, 4096)
		disk[510], disk[511] = 0x55, 0xaa
		_, _ = w.Write(disk)
	}))
	t.Cleanup(images.Close)
	const needsFormat = "Raw image needs disk_format"
	config := func(more object) object {
		return object{
			"node_id": s.fake.Nodes()[0].UUID,
			"image":   withAll(object{"url": images.URL + "/debian.img", "checksum": strings.Repeat("0", 64)}, more),
		}
	}
	mentions(t, "a raw image", s.shown("metal_deployment", config(nil), nil), needsFormat, true)
	mentions(t, "a raw image, planned again", s.shown("metal_deployment", config(nil), nil), needsFormat, true)
	mentions(t, "with its format", s.shown("metal_deployment", config(object{"disk_format": "raw"}), nil), needsFormat, false)
	mentions(t, "with a format that is not known", s.shown("metal_deployment", config(object{"disk_format": notKnown}), nil),
		needsFormat, false)
	if looks != 1 {
		t.Errorf("the plans have looked at the image %d times", looks)
	}
	made, said := s.apply("metal_deployment", config(nil), nil)
	if failed(said) {
		t.Fatal(describe(said))
	}
	s.again()
	mentions(t, "a deployed machine", s.shown("metal_deployment", config(nil), s.read(made)), needsFormat, false)
	mentions(t, "a rebuild", s.shown("metal_deployment", withAll(config(nil), object{"capabilities": object{"boot_mode": "uefi"}}), made),
		needsFormat, true)
}
