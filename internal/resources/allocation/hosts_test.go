package allocation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// rack returns hosts and as many allocations that depend on them, as the page of metal_allocation recommends. Two hosts with the same
// MAC address make one of them fail.
func rack(s *site.Site, macs ...int) string {
	var hosts []string
	for n, mac := range macs {
		hosts = append(hosts, fmt.Sprintf("%q = %q", s.Name(fmt.Sprintf("r%d", n)), s.MAC(mac)))
	}
	return s.Provider() + fmt.Sprintf("locals {\n  rack = {\n    %s\n  }\n}\n", strings.Join(hosts, "\n    ")) +
		"resource \"metal_host\" \"rack\" {\n  for_each = local.rack\n  name = each.key\n  driver = \"fake-hardware\"\n  ports = { " +
		"(each.value) = {} }\n" +
		"  resource_class = " + acctest.Quoted(s.Class()) + "\n  target_state = \"available\"\n}\n" +
		acctest.Allocation(s, fmt.Sprintf("count = %d", len(macs)), "name = \""+s.Name("web")+"-${count.index}\"",
			"depends_on = [metal_host.rack]")
}

func TestAccAllocation_waitsForTheHostsItDependsOn(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, rack(s, 1, 2))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)

	w.Configure(rack(s, 1, 2, 3))
	acctest.Mention(t, w.Must("plan"), "2 to add, 0 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")

	w.Configure(rack(s, 1, 2, 3, 4, 1)) // the fifth host has the network card of the first, which is reserved
	acctest.Fails(t, w, []string{"plan"}, "Machine in use would change hands", "is reserved", s.MAC(1))
	w.Configure(rack(s, 1, 2, 3, 4, 4)) // one of the new hosts has the network card of the other
	output := acctest.Fails(t, w, acctest.Apply(), s.MAC(4), "already exists")
	if strings.Contains(output, "metal_allocation.a[3]: Creating") {
		t.Errorf("an allocation is created although a host has failed:\n%s", output)
	}
	w.Configure(rack(s, 1, 2, 3, 4, 5))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "3 added", "0 destroyed") // whichever of the two has got the card
	w.Must("destroy", "-auto-approve")
}
