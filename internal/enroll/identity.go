package enroll

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// Values of on_destroy.
const (
	DestroyDelete = "delete"
	DestroyForget = "forget"
)

// Targets are the values of target_state.
func Targets() []string {
	return []string{string(GoalEnroll), string(states.GoalManageable), string(states.GoalAvailable)}
}

// TargetOf returns the target state that matches the provision state of an imported node.
func TargetOf(node *ironic.Node) string {
	switch {
	case ironic.State(node.ProvisionState) == stateEnroll:
		return string(GoalEnroll)
	case node.InstanceUUID != "" || states.Settled(states.GoalAvailable, ironic.State(node.ProvisionState)):
		return string(states.GoalAvailable)
	}
	return string(states.GoalManageable)
}

// TargetWithBMC returns the target state of a host that has a BMC now and whose configuration has no target_state: one that waits in enroll becomes
// manageable.
func TargetWithBMC(target string, s ironic.State) string {
	if target == string(GoalEnroll) && s == stateEnroll {
		return string(states.GoalManageable)
	}
	return target
}

// All hosts have the same summaries, so that Terraform folds their warnings into one of each.
const (
	removesSummary = "Destroying removes the host from Ironic"
	staysSummary   = "Destroying leaves the host in Ironic"
)

// DoRemove is the step of a host that Terraform destroys.
const DoRemove Action = "remove"

// destroy says what destroying a host does to its node.
func (p *plan) destroy() {
	switch s := p.seen; {
	case p.OnDestroy == DestroyForget:
		p.warn(nil, staysSummary, fmt.Sprintf("on_destroy is \"forget\": node %s stays in Ironic as it is. Terraform does not manage it any more.", p.Label))
	case s.Foreign:
		p.warn(nil, staysSummary, fmt.Sprintf("Node %s was discovered, and no configuration was applied to it, so it stays in Ironic. Terraform does not manage it any more.", p.Label))
	case p.ByAgent && s.occupied():
		p.refuse(decide.At("on_destroy"), "Deployed host cannot be removed", fmt.Sprintf("Host %s is in state %q. Ironic removes no deployed node, and cannot undeploy this one without BMC credentials. "+
			"To leave it in Ironic, set on_destroy = \"forget\" on the metal_host, too, and apply; then destroy. Or give the host a bmc in place of power_control.", p.Label, s.State))
	default:
		p.add(Step{Do: DoRemove})
		p.warn(nil, removesSummary, fmt.Sprintf("Node %s is removed from Ironic; the machine itself is left as it is. The value of on_destroy that was applied last counts (here: delete). "+
			"To leave the node in Ironic, set on_destroy = \"forget\" and apply before you destroy.", p.Label))
	}
}

// MayBeForeign reports whether a node to which no configuration was ever applied was discovered. Another discovery may own such a node, because
// Terraform imports it even if metal_discovery_import has lost the machine to another one.
func MayBeForeign(ctx context.Context, site *machine.Site, id string) (bool, error) {
	node, err := site.Ironic.Node(ctx, id)
	if api.IsNotFound(err) {
		return false, nil
	}
	return err == nil && Discovered(node), err
}

// KeepForeign says that the deletion of a host leaves its node, because that may be foreign.
func KeepForeign(host string) decide.Notice {
	return decide.Warn(nil, "Discovered node is not deleted", "Discovery has created the node of host "+host+", and the provider has no record "+
		"that a configuration was applied to it: the host was only imported, or it is tainted and replaced. Another discovery may own the node, so it stays in Ironic, and Terraform forgets the host. "+
		"If this configuration has a host of the same name, that host takes the node over again.")
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

// takeOver warns of a discovered node that the host takes over.
func (p *plan) takeOver() {
	if p.seen.TakesOver == "" {
		p.ask(AskTakeOver)
		return
	}
	p.notice(TakeOver(p.Wish, p.seen.TakesOver))
}

// TakeOver warns of a discovered node that a new host takes over.
func TakeOver(w Wish, node string) decide.Notice {
	p := &plan{Wish: w}
	inspects, cleans := p.mayBeInspected(), p.mayBeCleaned()
	effect := ""
	switch does := preparation(inspects, cleans); {
	case cleans:
		effect = fmt.Sprintf(" Ironic %s it: the machine boots, and loses the data that the site's clean steps erase.", does)
	case inspects:
		effect = fmt.Sprintf(" Ironic %s it: the machine boots.", does)
	}
	return decide.Warn(nil, "Discovered node is taken over", fmt.Sprintf("Ironic has node %s already, which discovery has created. Host %s takes it over instead of creating another.%s", node, w.Label, effect))
}
