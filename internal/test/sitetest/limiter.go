package sitetest

import (
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Run is a run of the provider: a client of its own on a shared Ironic.
func Run(fake *fakeironic.Server, limit throttle.Limit) *Client {
	return NewSite(machine.Config{Config: api.Config{Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: fake}, Limit: limit})
}

// UpTo returns a limit of machines at once.
func UpTo(hosts int) throttle.Limit {
	return throttle.Limit{Max: hosts, StuckAfter: 45 * time.Minute, Coordination: throttle.CoordinationIronic}
}

// SystemOnly is how Ironic refuses with status 500 what only users of the system may do.
const SystemOnly = `"baremetal:chassis:create": "role:admin and system_scope:all" requires a scope of ['system'], request was made with project scope.`
