package ironic_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

type transport = ironictest.Transport

// Helpers that the tests of the domain use too.
var (
	inVirtualTime = ironictest.InVirtualTime
	fleet         = ironictest.Fleet
	nodeOf        = ironictest.NodeOf
	asOther       = ironictest.AsOther
	count         = ironictest.Count
	once          = ironictest.Once
	times         = ironictest.Times
	lost          = ironictest.Lost
	answerOf      = ironictest.Fault
)

// newClient returns a client of a fake Ironic in this process.
func newClient(fake *fakeironic.Server, configure ...func(*api.Config)) *ironic.Client {
	cfg := api.Config{Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: fake, PollInterval: ironictest.Poll}
	for _, c := range configure {
		c(&cfg)
	}
	return ironic.New(cfg, ironic.Polls{})
}

// enrolled creates a node in state enroll and returns its UUID.
func enrolled(t *testing.T, client *ironic.Client, name string) string {
	t.Helper()
	node, err := client.CreateNode(t.Context(), ironic.NewUUID(), ironic.Settings{
		"name": name, "driver": "fake-hardware",
		"resource_class": "baremetal",
	})
	if err != nil {
		t.Fatalf("enroll %s: %v", name, err)
	}
	return node.UUID
}
