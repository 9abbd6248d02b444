package expect_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

func TestCheckDriver(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	client := sitetest.NewClient(fake)
	for range 3 {
		if err := expect.CheckDriver(t.Context(), client.Site, "redfish"); err != nil {
			t.Errorf("an enabled driver: %v", err)
		}
		summary, detail := failure.Explain("plan host h", expect.CheckDriver(t.Context(), client.Site, "redfsh"))
		if summary != "Could not plan host h" || !strings.Contains(detail, "The site has no driver redfsh. Enabled are") ||
			!strings.Contains(detail, "enabled_hardware_types") {
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
	silent := ironictest.Fleet(1)
	silent.Reject = ironictest.Times(100, http.MethodGet, "/v1/drivers", ironictest.Fault(http.StatusInternalServerError,
		sitetest.SystemOnly))
	tenant := sitetest.NewClient(silent)
	for range 3 {
		if err := expect.CheckDriver(t.Context(), tenant.Site, "redfsh"); err != nil {
			t.Errorf("without an answer: %v", err)
		}
	}
	if n := ironictest.Count(silent, http.MethodGet, "/v1/drivers"); n != 1 {
		t.Errorf("a user who may not see the drivers was made to ask %d times", n)
	}
}

func TestCheckInterface(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	client := sitetest.NewClient(fake)
	for _, name := range []string{"", "ipxe", "redfish-virtual-media"} {
		if err := expect.CheckInterface(t.Context(), client.Site, "redfish", "boot", name); err != nil {
			t.Errorf("the boot interface %q: %v", name, err)
		}
	}
	if err := expect.CheckInterface(t.Context(), client.Site, "redfsh", "boot", "ipxe"); err != nil {
		t.Errorf("an interface of an unknown driver, which CheckDriver refuses: %v", err)
	}
	for kind, name := range map[string]string{"management": "noop", "power": "ipmitool", "boot": "redfish-virtual-media"} {
		if err := expect.CheckInterface(t.Context(), client.Site, "fake-hardware", kind, name); err != nil {
			t.Errorf("Ironic lets fake-hardware have every enabled interface: %v", err)
		}
	}
	if err := expect.CheckInterface(t.Context(), client.Site, "fake-hardware", "boot", "ipxee"); err == nil {
		t.Error("no conductor has enabled ipxee")
	}
	_, detail := failure.Explain("plan host h", expect.CheckInterface(t.Context(), client.Site, "redfish", "boot", "ipxee"))
	for _, want := range []string{
		"Driver redfish has no boot interface ipxee at this site. Enabled are ", "ipxe",
		"enabled_boot_interfaces",
	} {
		if !strings.Contains(detail, want) {
			t.Errorf("%q is missing in: %s", want, detail)
		}
	}
	if n := ironictest.Count(fake, http.MethodGet, "/v1/drivers"); n != 1 {
		t.Errorf("Ironic was asked %d times", n)
	}
}
