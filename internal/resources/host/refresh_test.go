package host_test

import (
	"fmt"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A pipeline that looks for drift runs plan -refresh-only -detailed-exitcode: right after an apply, it must exit with 0.
func TestAccRefresh_afterApplyFindsNoDrift(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	hosts := func(description string) string {
		return s.Provider() + acctest.Host(s, 1, "description = "+acctest.Quoted(description), "inspect = true", `extra = { team = "web" }`,
			`traits = ["CUSTOM_A"]`) +
			acctest.Host(s, 2, fmt.Sprintf("ports = { %q = {} }", s.MAC(2)), `power_state = "off"`) +
			fmt.Sprintf("resource \"metal_host\" \"enrolled\" {\n  name = %q\n  driver = \"fake-hardware\"\n  target_state = "+
				"\"enroll\"\n}\n", s.Name("enrolled"))
	}
	w := acctest.NewWorkspace(t, hosts("first"))
	defer acctest.Destroy(t, s, w)
	w.Must(acctest.Apply()...)
	acctest.NoDrift(t, w)

	w.Configure(hosts("second"))
	w.Must(acctest.Apply()...)
	acctest.NoDrift(t, w)
}
