package sitetest

import (
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Slots limits a site to a number of machines at once.
func Slots(n int) func(*machine.Config) {
	return func(cfg *machine.Config) { cfg.Limit = throttle.Limit{Max: n} }
}
