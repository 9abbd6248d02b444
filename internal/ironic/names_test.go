package ironic_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// A name that nothing can have is one that does not exist, and never another part of a URL.
func TestNames_thatCannotExist(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	client := newClient(fake)
	for _, ref := range []string{
		"", ".", "..", "../chassis", "a/b", "bad name", "n?x=1", "detail", "states", "Zürich",
		strings.Repeat("n", 256),
	} {
		if _, err := client.Node(t.Context(), ref); !api.IsNotFound(err) {
			t.Errorf("node %q: %v", ref, err)
		}
		if _, err := client.Allocation(t.Context(), ref); !api.IsNotFound(err) {
			t.Errorf("allocation %q: %v", ref, err)
		}
		if _, err := client.AllocationOf(t.Context(), ref); !api.IsNotFound(err) {
			t.Errorf("allocation of node %q: %v", ref, err)
		}
	}
	if sent := fake.Requests(); len(sent) > 0 {
		t.Errorf("it sent %+v", sent)
	}
}

func TestNodeArgument(t *testing.T) {
	t.Parallel()
	const id = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"
	for name, want := range map[string]string{
		"rack1-07": "rack1-07", "n_1~.-": "n_1~.-", "": id, "-n": id, "--all": id,
		"~root": id, "a;b": id,
	} {
		if got := ironic.NodeArgument(&ironic.Node{Name: name, UUID: id}); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
