package enroll

import (
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// refuseRetirement refuses to retire a reserved node, which Ironic refuses while it is available.
func (p *plan) refuseRetirement() bool {
	s := p.seen
	if !p.Retired.V || s.Retired || !states.InPool(s.node()) || s.Instance == "" {
		return false
	}
	p.refuse(decide.At("retired"), "Reserved host cannot be retired", fmt.Sprintf("Host %s is available and reserved by %s. Ironic retires such a node only when it is free or deployed. "+
		"Destroy its metal_allocation first, in an apply of its own, or leave retired as it is.", p.Label, s.Instance))
	return true
}

// decideRetirement leaves a node in quarantine alone, and warns if a node that another client has retired should be available.
func (p *plan) decideRetirement() {
	if p.seen.Quarantine != "" && p.seen.Retired && !p.RetiredSet.V {
		p.decideQuarantine()
	}
	p.Forecast.NoRetireReason = isFalse(p.Retired) && !p.ReasonSet // Ironic clears it
	holds := p.Retired.V && p.Target.V == string(states.GoalAvailable) && !p.seen.deployed()
	if holds && p.seen.Quarantine == "" && p.RetiredSet.IsNull() {
		p.warn(decide.At("target_state"), "Host is retired", fmt.Sprintf("Another client of Ironic has retired host %s, so it stays manageable and does not become available. "+
			"Set retired = false to make it available again, or retired = true to end this warning.", p.Label))
	}
}

// decideQuarantine keeps a node in quarantine retired, and warns. Only retired = false, or a value that is not known yet, that the configuration did not have before returns the node: a
// host that always says so would return a broken machine to the pool. While the node is being undeployed, there is nothing to say.
func (p *plan) decideQuarantine() {
	s, deployed := p.seen, p.seen.deployed()
	if (isFalse(p.RetiredSet) || p.RetiredSet.Unknown) && !s.Retires && !deployed {
		returns := "With retired = false, the apply returns it to use."
		if p.RetiredSet.Unknown {
			returns = "The value of retired is not known yet. If it is false, the apply returns the host to use."
		}
		p.warn(decide.At("retired"), "Host leaves its quarantine", fmt.Sprintf("Host %s is in quarantine: %s. %s", p.Label, s.Quarantine, returns))
		return
	}
	p.Forecast.KeepsRetired = true
	p.Retired = decide.Known(true)
	how := "set retired = false"
	if s.Retires {
		how = "apply retired = true, and then retired = false"
	}
	if !deployed {
		p.warn(decide.At("retired"), "Host is in quarantine", fmt.Sprintf("Host %s is in quarantine: %s. It stays retired, and no allocation reserves it. To return it, repair it and %s.", p.Label, s.Quarantine, how))
	}
}
