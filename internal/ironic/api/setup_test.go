package api_test

import (
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
	count         = ironictest.Count
	once          = ironictest.Once
	times         = ironictest.Times
	answerOf      = ironictest.Fault
	wantNear      = ironictest.WantNear
)

// newClient returns a client of a fake Ironic in this process, whose connection is under test.
func newClient(fake *fakeironic.Server, configure ...func(*api.Config)) *ironic.Client {
	cfg := api.Config{Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: fake, PollInterval: ironictest.Poll}
	for _, c := range configure {
		c(&cfg)
	}
	return ironic.New(cfg, ironic.Polls{})
}
