package operate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// metal manage, provide and inspect begin no other machine when two have failed for a reason that is not theirs. A machine's own reason
// stops nothing.
func TestRun_stopsAfterTwoFailuresForOneReason(t *testing.T) {
	t.Parallel()
	const (
		refused = "Failed to get power state. Error: HTTP GET https://b/redfish/v1 returned code 401. Base.1.0.GeneralError: Invalid"
		noISO   = "Failed to inspect hardware. Reason: Unable to find kernel, ramdisk for building ISO, or explicit ISO for n"
		network = "UUID or name of cleaning network is not set in configuration or in node driver_info."
		disk    = "Failed to erase the metadata on the device /dev/sda"
	)
	for name, tt := range map[string]struct {
		op           operate.Operation
		state, words string
		failed       int
	}{
		"manage, wrong passwords": {operate.Manage(), "enroll", refused, 5},
		"inspect, no ISO":         {operate.Inspect(nil), "manageable", noISO, 2},
		"provide, no network":     {operate.Provide(nil), "manageable", network, 2},
		"provide, disks":          {operate.Provide(nil), "manageable", disk, 5},
	} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(5)
			for _, n := range fake.Nodes() {
				fake.Set(n.UUID, "provision_state", tt.state)
			}
			fake.Fail = func(fakeironic.Node, string) string { return tt.words }
			client := sitetest.NewClient(fake)
			var machines []ironic.Node
			for _, n := range fake.Nodes() {
				node, err := client.Ironic.Node(t.Context(), n.UUID)
				if err != nil {
					t.Fatal(err)
				}
				machines = append(machines, *node)
			}
			runner := operate.Runner{Site: client.Site, Parallel: 1, Timeout: time.Hour}
			results := runner.Run(t.Context(), tt.op, operate.Tasks(tt.op, machines, operate.Look(t.Context(), client.Site, machines)))
			failed := slices.IndexFunc(results, func(r operate.Result) bool { return r.Outcome != operate.Failed })
			if failed < 0 {
				failed = len(results)
			}
			if failed != tt.failed {
				t.Fatalf("%s: %d machines have failed, want %d", name, failed, tt.failed)
			}
			for _, r := range results[failed:] {
				if r.Outcome != operate.Refused || !failure.Is(r.Err, machine.KindInVain) || r.Node.ProvisionState != tt.state {
					t.Errorf("%s: %s, %s: %v", name, r.Outcome, r.Node.ProvisionState, r.Err)
				}
			}
		})
	}
}
