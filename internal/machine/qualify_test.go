package machine_test

import (
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

var reset = notes.Recipe{Steps: []ironic.CleanStep{{Interface: "bios", Step: "factory_reset"}}}

// atRest returns an Ironic with a machine that is manageable.
func atRest() *fakeironic.Server {
	fake := operable("manageable")
	fake.Set("node-000", "target_provision_state", nil)
	return fake
}

// A run was killed after it had noted the beginning of a qualification, and before it sent the steps. Another cleaning is no pass.
func TestQualify_anotherCleaningIsNoPass(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := atRest()
		fake.Set("node-000", "extra", map[string]any{notes.KeyQualification: map[string]any{
			"steps": []any{map[string]any{"interface": "deploy", "step": "burnin_cpu"}}, "begun": time.Now().Format(time.RFC3339),
			"parameters": map[string]any{"agent_burnin_cpu_timeout": 60},
		}})
		fake.Set("node-000", "driver_info", map[string]any{"agent_burnin_cpu_timeout": 60})
		m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
		if err == nil {
			err = m.Clean(t.Context(), reset.Order(), true, time.Hour)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		q := notes.QualificationOf(m.Node())
		if q == nil || !q.Begun.IsZero() || !q.Passed.IsZero() || q.IsEmpty() || len(m.Node().DriverInfo) > 0 {
			t.Errorf("the note is %+v, and driver_info %v", q, m.Node().DriverInfo)
		}
	})
}

// A machine that fails is retired only if the reason speaks against the machine, or is not in the table of reasons.
func TestQualify_blameDecides(t *testing.T) {
	t.Parallel()
	for words, retired := range map[string]bool{
		"Agent returned error: fio (disk) failed with error Unexpected error while running command.": true,
		"A text without a row.": true,
		"stress-ng (cpu) failed with error [Errno 2] No such file or directory: 'stress-ng'": false,
		"By request, the clean operation was aborted":                                        false,
	} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := atRest()
			fake.Fail = func(fakeironic.Node, string) string { return words }
			m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
			if err != nil {
				t.Fatal(err)
			}
			err = m.Qualify(t.Context(), reset, true, time.Hour)
			q := notes.QualificationOf(m.Node())
			if !failure.Is(err, failure.KindFailed) || q == nil || q.Failed.IsZero() || m.Node().Retired != retired ||
				(notes.QuarantineOf(m.Node()) != nil) != retired {
				t.Errorf("%s: %v; the note is %+v, retired %t", words, err, q, m.Node().Retired)
			}
		})
	}
}
