package machine_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

func TestWithdraw_unusedOnly(t *testing.T) {
	t.Parallel()
	instance := "6f2f6c4e-0000-4000-8000-000000000001"
	for name, tc := range map[string]struct {
		state       string
		instance    any
		maintenance bool
		says        string // "" is removal
	}{
		"enrolled":                      {"enroll", nil, false, ""},
		"manageable":                    {"manageable", nil, false, ""},
		"available":                     {"available", nil, false, ""},
		"failed to clean":               {"clean failed", nil, false, ""},
		"failed to be inspected":        {"inspect failed", nil, false, ""},
		"active":                        {"active", instance, false, "something is deployed on it"},
		"active in maintenance":         {"active", instance, true, "something is deployed on it"},
		"deploy failed":                 {"deploy failed", instance, true, "something is deployed on it"},
		"allocated":                     {"available", instance, false, "reserved by " + instance},
		"allocated in maintenance":      {"available", instance, true, "reserved by " + instance},
		"in rescue":                     {"rescue", nil, false, "something is deployed on it"},
		"half undeployed":               {"error", nil, true, "Undeploy it again first"},
		"running without a reservation": {"active", nil, true, "something is deployed on it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := ironictest.Fleet(1)
			fake.Set("node-000", "provision_state", tc.state)
			fake.Set("node-000", "instance_uuid", tc.instance)
			fake.Set("node-000", "maintenance", tc.maintenance)
			err := sitetest.NewClient(fake).Withdraw(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID, time.Hour)
			_, exists := fake.Node("node-000")
			if tc.says == "" {
				if err != nil || exists {
					t.Errorf("%v, still there: %t", err, exists)
				}
			} else if !failure.Is(err, machine.KindRefused) || !strings.Contains(err.Error(), tc.says) || !exists {
				t.Errorf("%v, want %q; still there: %t", err, tc.says, exists)
			}
		})
	}
}

func TestWithdraw_waits(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := cleaningFleet(1)
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		ironictest.AsOther(t, fake, http.MethodPut, "nodes/"+id+"/states/provision", map[string]any{"target": "provide"})
		if err := sitetest.NewClient(fake).Withdraw(t.Context(), id, 2*time.Hour); err != nil {
			t.Error(err)
		}
		if _, exists := fake.Node(id); exists {
			t.Error("it is still there")
		}
		if err := sitetest.NewClient(fake).Withdraw(t.Context(), id, time.Hour); err != nil {
			t.Errorf("of what is gone: %v", err)
		}
	})
}
