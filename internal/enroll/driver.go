package enroll

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
)

// warnDriver warns if the driver of a deployed machine changes.
func (p *plan) warnDriver() {
	s := p.seen
	if !s.occupied() || !p.Driver.Set {
		return
	}
	changes := changesOfDriver(s.Driver, p.Driver.V, s.Scheme, p.Scheme)
	if len(changes) == 0 {
		return
	}
	keep := ""
	if s.Address != "" && len(p.AddressAt) > 1 {
		keep = fmt.Sprintf(" To keep it, write the address as it is now: %q.", s.Address)
	}
	p.warn(p.AddressAt, "Driver of a deployed machine changes", fmt.Sprintf("Host %s is in state %q, and %s. The machine goes on running; from then on, Ironic switches, restarts, "+
		"rebuilds and cleans it that way.%s", p.Label, s.State, strings.Join(changes, ", "), keep))
}

// changesOfDriver says how the driver of a node changes, and the hardware interfaces that the schemes of two BMC addresses imply. was or
// becomes is nil if there is no such address.
func changesOfDriver(before, after string, was, becomes *driverinfo.BMC) []string {
	var changes []string
	if before != "" && before != after {
		changes = append(changes, fmt.Sprintf("its driver changes from %s to %s", before, after))
	}
	if was == nil || becomes == nil || len(changes) > 0 {
		return changes
	}
	kinds := maps.Clone(becomes.Interfaces)
	if kinds == nil {
		kinds = map[string]string{}
	}
	maps.Copy(kinds, was.Interfaces)
	name := func(interfaces map[string]string, kind string) string {
		if value := interfaces[kind]; value != "" {
			return value
		}
		return "the driver's default"
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if from, to := name(was.Interfaces, kind), name(becomes.Interfaces, kind); from != to {
			changes = append(changes, fmt.Sprintf("its %s interface changes from %s to %s", kind, from, to))
		}
	}
	return changes
}

// refuseClass refuses to change the class of a deployed node.
func (p *plan) refuseClass() bool {
	if !p.seen.occupied() || p.seen.Class == "" || p.Class == "" || p.Class == p.seen.Class {
		return false
	}
	p.refuse(decide.At("resource_class"), "Class of a deployed node is fixed", fmt.Sprintf("Host %s is in state %q. Ironic changes the resource class of a node only while nothing is deployed on it. "+
		"Destroy its metal_deployment first, in an apply of its own, or leave resource_class as it is (%q).", p.Label, p.seen.State, p.seen.Class))
	return true
}

// warnPassword warns of a BMC user without a password, unless Ironic has one already.
func (p *plan) warnPassword() {
	if !p.NoPassword {
		return
	}
	if s := p.seen; !s.New {
		if s.Scheme == nil && s.Driver == p.Driver.V || s.Scheme != nil && p.Scheme != nil && s.Scheme.PasswordKey == p.Scheme.PasswordKey {
			return
		}
	}
	p.warn(decide.At("bmc", "username"), "BMC without a password", "bmc has a username and no password, so the BMC will probably refuse Ironic. "+
		"Set password_wo and password_wo_version, or password.")
}
