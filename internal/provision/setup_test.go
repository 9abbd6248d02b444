package provision_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

const poll = ironictest.Poll

type transport = ironictest.Transport

// Helpers that the tests of the REST client use too.
var (
	inVirtualTime = ironictest.InVirtualTime
	fleet         = ironictest.Fleet
	nodeOf        = ironictest.NodeOf
	asOther       = ironictest.AsOther
	count         = ironictest.Count
	verbs         = ironictest.Verbs
	provisionPath = ironictest.ProvisionPath
	once          = ironictest.Once
	times         = ironictest.Times
	lost          = ironictest.Lost
	fault         = ironictest.Fault
	wantNear      = ironictest.WantNear
)

// newClient returns a client of a fake Ironic in this process.
func newClient(fake *fakeironic.Server, configure ...func(*provision.Config)) *site {
	cfg := provision.Config{Config: ironic.Config{Endpoint: "http://ironic.test", Auth: ironic.AuthNone, Transport: fake, PollInterval: poll}}
	for _, c := range configure {
		c(&cfg)
	}
	return newSite(cfg)
}

// setting is a patch that sets one attribute.
func setting(path string, value any) ironic.Patch {
	var p ironic.Patch
	p.Set(path, value)
	return p
}

// enrolled creates a node in state enroll and returns its UUID.
func enrolled(t *testing.T, client *site, name string) string {
	t.Helper()
	node, err := client.Enroll(t.Context(), ironic.NewUUID(), ironic.Settings{"name": name, "driver": "fake-hardware", "resource_class": "baremetal"})
	if err != nil {
		t.Fatalf("enroll %s: %v", name, err)
	}
	return node.UUID
}
