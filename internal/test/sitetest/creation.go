package sitetest

import (
	"context"
	"maps"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// Begin creates the node of a candidate as the first request of a run does, and returns the machine's record.
func Begin(t *testing.T, run *Client, who host.Candidate) *machine.Machine {
	t.Helper()
	node, err := host.Enroll(t.Context(), run.Site, who.UUID, ironic.Settings{
		"name": who.Name, "driver": who.Driver, "driver_info": who.DriverInfo, "resource_class": "baremetal",
	})
	if err != nil {
		t.Fatal(err)
	}
	return run.Record(node)
}

// TheSame is a candidate of another run that wants to create the same machine.
func TheSame(who host.Candidate) host.Candidate {
	who.UUID = ironic.NewUUID()
	return who
}

// MachineOf is a candidate with a driver that the fake has.
func MachineOf(n int) host.Candidate {
	who := Candidate(n)
	who.Driver = "redfish"
	return who
}

// FirstExtra returns extra of an allocation as it was before an undeployment may have created the allocation again.
func FirstExtra(a *ironic.Allocation) map[string]any {
	extra := maps.Clone(a.Extra)
	delete(extra, notes.KeyCreated)
	return extra
}

// ExtraOf reads the extra of a node.
func ExtraOf(t *testing.T, fake *fakeironic.Server, node string) map[string]any {
	t.Helper()
	n, err := NewClient(fake).Ironic.Node(context.WithoutCancel(t.Context()), node)
	if err != nil {
		t.Fatal(err)
	}
	return n.Extra
}
