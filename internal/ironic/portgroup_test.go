package ironic_test

import (
	"fmt"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Ironic 21.4 mistakes the number that a UUID begins with for the number of a group. Groups 1 to 9 have ports, so a fifth of all random
// UUIDs would be refused.
func TestDeletePortGroup_besideGroupsWithPorts(t *testing.T) {
	t.Parallel()
	client := newClient(&fakeironic.Server{MaxMicroversion: "1.82"})
	node := enrolled(t, client, "web")
	create := func() *ironic.PortGroup {
		group, err := client.CreatePortGroup(t.Context(), node, ironic.PortGroupSpec{})
		if err != nil {
			t.Fatal(err)
		}
		return group
	}
	for i := range 9 {
		if _, err := client.CreatePort(t.Context(), node, ironic.PortSpec{
			Address: fmt.Sprintf("52:54:00:00:00:%02d", i),
			Group:   create().UUID,
		}); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		if err := client.DeletePortGroup(t.Context(), *create()); err != nil {
			t.Fatal(err)
		}
	}
}
