package states_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

func TestFailedStep_asIronicNamesIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		node ironic.Node
		want string
	}{
		"a deploy step": {ironic.Node{
			ProvisionState: "deploy failed",
			LastError:      "Deploy step deploy.write_image failed: Error downloading image.",
		}, "deploy.write_image"},
		"a deploy step with an exception": {ironic.Node{
			ProvisionState: "deploy failed",
			LastError:      "Deploy step deploy.deploy failed with KeyError: 'ks_template'.",
		}, "deploy.deploy"},
		"a clean step": {ironic.Node{ProvisionState: "clean failed", LastError: "Node 5f4d failed step {'step': " +
			"'erase_devices', 'priority': 10, 'args': {'x': {'y': 1}}, 'interface': 'deploy'}: disk is frozen"}, "deploy.erase_devices"},
		"a step of the ramdisk": {ironic.Node{
			ProvisionState: "clean failed",
			LastError:      "Clean step raid.delete_configuration failed on node 5f4d. no RAID",
		}, "raid.delete_configuration"},
		"an aborted step": {
			ironic.Node{
				ProvisionState: "clean failed",
				LastError:      `By request, the clean operation was aborted during or after the completion of step "deploy.erase_devices"`,
			},
			"deploy.erase_devices",
		},
		"no step": {ironic.Node{
			ProvisionState: "deploy failed",
			LastError:      "Timeout reached while waiting for callback for node 5f4d",
		}, "deploy"},
		"an inspection":  {ironic.Node{ProvisionState: "inspect failed", LastError: "timeout"}, "inspect"},
		"a verification": {ironic.Node{ProvisionState: "enroll", LastError: "Failed to get power state"}, "verify"},
		"a fault": {ironic.Node{
			ProvisionState: "active", Fault: "power failure",
			LastError: "During sync_power_state, max retries exceeded",
		}, "power failure"},
	} {
		if got := states.FailedStep(&tc.node); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
