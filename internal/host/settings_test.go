package host_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// edited returns what a patch does, such as "add /name" or "remove /extra/team".
func edited(patch ironic.Patch) (edits []string) {
	for _, op := range patch {
		edits = append(edits, string(op.Op)+" "+op.Path)
	}
	return edits
}

func TestSettings_onlyDifferencesAreSent(t *testing.T) {
	t.Parallel()
	type s = ironic.Settings
	type object = map[string]any
	text := func(o object) *ironic.Node {
		node := &ironic.Node{Name: "web", Driver: "redfish", Owner: "team-a", RetiredReason: "broken"}
		node.DriverInfo = object{"redfish_address": "https://bmc", "redfish_password": ironic.Masked}
		node.Properties = object{"cpus": 8.0, "capabilities": "boot_mode:uefi,raid:1"}
		node.Extra = o
		return node
	}
	const password = "/driver_info/redfish_password"
	for name, tt := range map[string]struct {
		want  host.Settings
		extra object // of the node
		edits []string
	}{
		"the same": {want: host.Settings{Settings: s{
			"name": "web", "driver": "redfish", "owner": "team-a",
			"properties": object{"cpus": "8"},
		}}},
		"the driver first": {
			want:  host.Settings{Settings: s{"boot_interface": "ipxe", "driver": "ipmi"}},
			edits: []string{"add /driver", "add /boot_interface"},
		},
		"numbers of extra have types": {
			want: host.Settings{Settings: s{"extra": object{"unit": "1"}}}, extra: object{"unit": 1.0},
			edits: []string{"add /extra/unit"},
		},
		"what has gone": {
			want:  host.Settings{Without: []string{"/driver", "/extra/rack", "/extra/team", "/owner"}},
			extra: object{"team": "a"}, edits: []string{"remove /extra/team", "remove /owner"},
		},
		"false is none": {want: host.Settings{Settings: s{"retired": false, "description": ""}}},
		"but not of automated_clean": {
			want:  host.Settings{Settings: s{"automated_clean": false}},
			edits: []string{"add /automated_clean"},
		},
		"capabilities": {want: host.Settings{
			Capabilities:        map[string]string{"boot_mode": "bios"},
			WithoutCapabilities: []string{"raid"},
		}, edits: []string{"add /properties/capabilities"}},
		"no capability is left": {
			want:  host.Settings{WithoutCapabilities: []string{"boot_mode", "raid"}},
			edits: []string{"remove /properties/capabilities"},
		},
		"capabilities of others": {want: host.Settings{Capabilities: map[string]string{"raid": "1"}}},
		"masked and as written": {want: host.Settings{
			Settings: s{"driver_info": object{"redfish_password": "a"}},
			Written:  s{"driver_info": object{"redfish_password": "a"}},
		}},
		"masked and another one": {want: host.Settings{
			Settings: s{"driver_info": object{"redfish_password": "b"}},
			Written:  s{"driver_info": object{"redfish_password": "a"}},
		}, edits: []string{"add " + password}},
		"a secret that Ironic has": {want: host.Settings{
			Secrets:     object{"redfish_password": "a"},
			WrittenInfo: []string{"redfish_password"},
		}},
		"a secret under a new key": {want: host.Settings{Secrets: object{"redfish_password": "a"}}, edits: []string{"add " + password}},
		"a secret that has gone": {
			want:  host.Settings{Secrets: object{"ipmi_password": "a"}, WrittenInfo: []string{"ipmi_password"}},
			edits: []string{"add /driver_info/ipmi_password"},
		},
		"a secret that is sent again": {want: host.Settings{
			Secrets:     object{"redfish_password": "a"},
			WrittenInfo: []string{"redfish_password"}, Resends: true,
		}, edits: []string{"add " + password}},
		"secrets of a new node": {want: host.Settings{Secrets: object{"ipmi_password": "a"}, IsNew: true}},
		"a quarantine that stays": {
			want:  host.Settings{Settings: s{"retired": true, "retired_reason": "old"}, KeepsRetired: true},
			extra: object{"terraform_metal_quarantine": object{}},
		},
		"a note that is not needed": {
			want:  host.Settings{Forgets: true},
			extra: object{"terraform_metal_inspection": object{"triggers": "a"}},
			edits: []string{"remove /extra/terraform_metal_inspection"},
		},
		"a requested inspection": {
			want:  host.Settings{Inspects: "a", Forgets: true},
			edits: []string{"add /extra/terraform_metal_inspection"},
		},
	} {
		if got := edited(tt.want.Edits(text(tt.extra))); !slices.Equal(got, tt.edits) {
			t.Errorf("%s: %q, want %q", name, got, tt.edits)
		}
	}
}

// A user without the right to read driver_info changes what the last apply did not write, and nothing else.
func TestSettings_hiddenDriverInfoIsAsWritten(t *testing.T) {
	t.Parallel()
	node := &ironic.Node{Driver: "redfish", Hidden: ironic.Hidden{DriverInfo: true}}
	want := host.Settings{
		Settings:    ironic.Settings{"driver_info": map[string]any{"redfish_address": "https://bmc", "redfish_username": "root"}},
		Written:     ironic.Settings{"driver_info": map[string]any{"redfish_address": "https://bmc"}},
		WrittenInfo: []string{"redfish_address", "redfish_system_id"}, Without: []string{"/driver_info/redfish_system_id"},
	}
	if got, expected := edited(want.Edits(node)), []string{
		"add /driver_info/redfish_username",
		"remove /driver_info/redfish_system_id",
	}; !slices.Equal(got, expected) {
		t.Errorf("%q, want %q", got, expected)
	}
}

// Settings, traits and maintenance arrive by the fewest requests, and the record of the machine has them without another read.
func TestChangeSettings_nodeAndRecordAreAsWanted(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	fake.Set("node-000", "traits", []any{"CUSTOM_OLD", "CUSTOM_OTHERS"})
	m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
	if err != nil {
		t.Fatal(err)
	}
	want := &host.Settings{
		Settings: ironic.Settings{"description": "d", "lessee": "team-a"}, Traits: []string{"CUSTOM_NEW", "CUSTOM_OTHERS"},
		WithoutTraits: []string{"CUSTOM_OLD"},
		Maintenance:   &machine.Maintenance{On: true, Reason: "a disk is replaced"},
	}
	change := func(requests ...string) {
		t.Helper()
		fake.ResetRequests()
		if arrived, err := host.ChangeSettings(t.Context(), m, want); !arrived || err != nil {
			t.Fatal(arrived, err)
		}
		var sent []string
		for _, r := range fake.Requests() {
			sent = append(sent, r.Method+" "+strings.TrimPrefix(r.Path, "/v1/nodes/"+m.Node().UUID))
		}
		if !slices.Equal(sent, requests) {
			t.Errorf("sent %q, want %q", sent, requests)
		}
		now := ironictest.NodeOf(t, fake, "node-000")
		node := m.Node()
		if node.Description != "d" || !node.Maintenance || node.MaintenanceReason != "a disk is replaced" ||
			!slices.Equal(slices.Sorted(slices.Values(node.Traits)), []string{"CUSTOM_NEW", "CUSTOM_OTHERS"}) {
			t.Errorf("the record: %+v", node)
		}
		for attribute, value := range map[string]any{"lessee": "team-a", "maintenance": true, "maintenance_reason": "a disk is replaced"} {
			if now.Raw[attribute] != value {
				t.Errorf("%s is %v, want %v", attribute, now.Raw[attribute], value)
			}
		}
	}
	change("PATCH ", "PUT /traits/CUSTOM_NEW", "DELETE /traits/CUSTOM_OLD", "PUT /maintenance")
	want.WithoutTraits = nil
	change()
}

// A new driver resets interfaces that had the configured values, so they are sent again.
func TestChangeSettings_newDriverKeepsInterfaces(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	client := sitetest.NewClient(fake)
	before := host.Settings{
		Settings: ironic.Settings{"driver": "ipmi", "deploy_interface": "ramdisk", "boot_interface": "ipxe"},
		Secrets:  map[string]any{"ipmi_password": "calvin"},
	}
	node, err := host.Enroll(t.Context(), client.Site, ironic.NewUUID(), before.Enrollment())
	if err != nil {
		t.Fatal(err)
	}
	after := host.Settings{
		Settings: maps.Clone(before.Settings), Written: before.Settings,
		Secrets: map[string]any{"redfish_password": "calvin"},
	}
	after.Settings["driver"], after.Without, after.WrittenInfo = "redfish", []string{"/driver_info/ipmi_password"},
		[]string{"ipmi_password"}
	m := client.Record(node)
	if _, err := host.ChangeSettings(t.Context(), m, &after); err != nil {
		t.Fatal(err)
	}
	node = m.Node()
	if node.DriverInfo["redfish_password"] != ironic.Masked || node.DriverInfo["ipmi_password"] != nil ||
		node.DeployInterface != "ramdisk" || node.BootInterface != "ipxe" {
		t.Errorf("the node: %+v", node)
	}
}

// If a request fails after Ironic has the settings, the caller learns that: what was to be removed stays managed.
func TestChangeSettings_settingsArriveThoughTraitsFail(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
	if err != nil {
		t.Fatal(err)
	}
	for path, arrives := range map[string]bool{"/traits/": true, "/nodes/": false} {
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method != http.MethodGet && strings.Contains(r.URL.Path, path) {
				return &fakeironic.Rejection{Status: http.StatusForbidden}
			}
			return nil
		}
		want := &host.Settings{Settings: ironic.Settings{"description": path}, Traits: []string{"CUSTOM_A"}}
		if arrived, err := host.ChangeSettings(t.Context(), m, want); arrived != arrives || err == nil {
			t.Errorf("%s fails: arrived is %v, %v", path, arrived, err)
		}
	}
}

// Ironic rewrites the deploy interface of a node with autodetect while it is deployed. A change of it would end that for good, so none is
// sent.
func TestEdits_autodetectStays(t *testing.T) {
	t.Parallel()
	deployed := &ironic.Node{Driver: "redfish", DeployInterface: "autodetect", ActingDeploy: "direct", InstanceUUID: "i"}
	hidden := &ironic.Node{
		Driver: "redfish", DeployInterface: "direct", ActingDeploy: "direct", InstanceUUID: "i",
		Hidden: ironic.Hidden{DriverInternalInfo: true},
	}
	free := &ironic.Node{
		Driver: "redfish", DeployInterface: "direct", ActingDeploy: "direct",
		Hidden: ironic.Hidden{DriverInternalInfo: true},
	}
	for _, tt := range []struct {
		node     *ironic.Node
		wanted   string
		mustSend bool
	}{
		{deployed, "autodetect", false},
		{deployed, "ramdisk", true},
		{hidden, "autodetect", false},
		{hidden, "ramdisk", true},
		{free, "autodetect", true},
	} {
		want := &host.Settings{Settings: ironic.Settings{"driver": "redfish", "deploy_interface": tt.wanted}}
		if edits := want.Edits(tt.node); edits.Changes("/deploy_interface") != tt.mustSend {
			t.Errorf("%s for %+v: sent %v, want %v", tt.wanted, tt.node, !tt.mustSend, tt.mustSend)
		}
	}
}
