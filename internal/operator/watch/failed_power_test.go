package watch_test

import (
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

// A change of power of a machine whose deployment has failed before is not another failure.
func TestModel_countsAFailureOnce(t *testing.T) {
	t.Parallel()
	m := watch.NewModel("", 0)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ended, failed := 0, 0
	for i, power := range []string{"", "power off", "", "power on", ""} {
		machine := watch.Machine{
			ID: "1", Name: "n1", State: "deploy failed", Since: at, Failed: true, Step: "deploy.write_image",
			Power: power, InProgress: power != "",
		}
		if power != "" {
			machine.Operation = "power"
		}
		for _, c := range m.Add(watch.Sample{Taken: at.Add(time.Duration(i) * time.Minute), Machines: []watch.Machine{machine}}) {
			if c.Ended != nil {
				ended++
				if c.Ended.Failed {
					failed++
				}
			}
		}
	}
	if ended != 2 || failed != 0 {
		t.Errorf("%d operations have ended, %d of them failed, want 2 and 0", ended, failed)
	}
}
