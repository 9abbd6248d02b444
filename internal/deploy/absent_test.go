package deploy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// A machine does not boot Ironic's ramdisk. The guide "Network boot" says when the log tells that.
func TestDeploy_absentRamdiskIsToldThreeTimes(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, reserved := sitetest.Reserved(t, 29*time.Minute)
		var log sitetest.Logbook
		client := sitetest.NewClient(fake, log.Record, func(cfg *machine.Config) { cfg.PollInterval = 10 * time.Second })
		if _, _, err := client.Deploy(t.Context(), id, sitetest.Debian("1"), sitetest.OnceIn4h(reserved)); err != nil {
			t.Fatal(err)
		}
		var after []int
		for _, line := range log.Lines("level=WARN", "is in state wait call-back, and its ramdisk has not reported since") {
			_, ago, _ := strings.Cut(line, " UTC (")
			ago, _, _ = strings.Cut(ago, " ago)")
			passed, err := time.ParseDuration(ago)
			if err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			after = append(after, int(passed.Minutes()))
		}
		if !slices.Equal(after, []int{4, 8, 16}) {
			t.Errorf("told after %v minutes: %s", after, strings.Join(log.Lines("call-back"), "\n"))
		}
	})
}
