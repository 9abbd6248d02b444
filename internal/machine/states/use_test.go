package states_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Whatever runs, may run or is promised on a machine is a use of it.
func TestUseOf(t *testing.T) {
	t.Parallel()
	for node, want := range map[*ironic.Node]string{
		{ProvisionState: "active"}:                       "deployed",
		{ProvisionState: "deploying"}:                    "being deployed",
		{ProvisionState: "wait call-back"}:               "being deployed",
		{ProvisionState: "deploy failed"}:                "in state deploy failed",
		{ProvisionState: "rescue"}:                       "in rescue",
		{ProvisionState: "service failed"}:               "in service",
		{ProvisionState: "adopt failed"}:                 "being adopted",
		{ProvisionState: "available", InstanceUUID: "i"}: "reserved",
		{ProvisionState: "manageable", Protected: true}:  "protected",
		{ProvisionState: "available"}:                    "",
		{ProvisionState: "cleaning"}:                     "",
		{ProvisionState: "enroll", Maintenance: true}:    "",
		{ProvisionState: "active", InstanceUUID: "i"}:    "deployed",
	} {
		if got := states.UseOf(node); got != want {
			t.Errorf("%+v is used as %q, want %q", node, got, want)
		}
	}
}
