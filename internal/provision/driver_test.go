package provision_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

func TestCheckDriver(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	client := newClient(fake)
	for range 3 {
		if err := client.CheckDriver(t.Context(), "redfish"); err != nil {
			t.Errorf("an enabled driver: %v", err)
		}
		summary, detail := provision.Explain("plan host h", client.CheckDriver(t.Context(), "redfsh"))
		if summary != "Could not plan host h" || !strings.Contains(detail, "The site has no driver redfsh. Enabled are") || !strings.Contains(detail, "enabled_hardware_types") {
			t.Errorf("%s: %s", summary, detail)
		}
	}
	asked := 0
	for _, r := range fake.Requests() {
		if strings.HasSuffix(r.Path, "/v1/drivers") {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("Ironic was asked %d times", asked)
	}
	silent := fleet(1)
	silent.Reject = times(100, http.MethodGet, "/v1/drivers", fault(http.StatusInternalServerError, systemOnly))
	tenant := newClient(silent)
	for range 3 {
		if err := tenant.CheckDriver(t.Context(), "redfsh"); err != nil {
			t.Errorf("without an answer: %v", err)
		}
	}
	if n := count(silent, http.MethodGet, "/v1/drivers"); n != 1 {
		t.Errorf("a user who may not see the drivers was made to ask %d times", n)
	}
}
