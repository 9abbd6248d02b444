package operate

import (
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Harm is the worst that an operation does to a machine. What a command asks before it begins follows from it alone.
type Harm int

// The harms, from the least to the worst.
const (
	Harmless Harm = iota // nothing that a user would notice
	Restarts             // a free machine restarts, or something else that is worth a question
	Cuts                 // the power of a deployed or reserved machine is cut, or its system is disturbed
	Erases               // data on its disks may be erased
)

// worst is the worst that each command of metal that changes a machine does to it, if no run is at work on it. What a command does to one
// machine may be less, and never more.
var worst = map[string]Harm{
	"power on": Harmless, "power off": Cuts, "power reboot": Cuts, "nmi": Cuts, "abort": Cuts,
	"boot-device set": Restarts, "virtual-media attach": Restarts, "virtual-media detach": Restarts,
	"manage": Harmless, "maintenance on": Restarts, "maintenance off": Restarts, "retire": Restarts, "unretire": Restarts,
	"ready": Restarts, "freeze": Harmless, "thaw": Harmless,
	"rescue": Cuts, "unrescue": Cuts, "service": Cuts, "delete": Cuts,
	"inspect": Erases, "provide": Erases, "clean": Erases, "unhold": Erases, "undeploy": Erases, "release": Erases,
}

// WorstOf returns the worst that a command of metal does to a machine, and whether it changes machines at all. Its options do not matter.
func WorstOf(command string) (harm Harm, changes bool) {
	name, _, _ := strings.Cut(command, " --")
	harm, changes = worst[name]
	return harm, changes
}

// bounded refuses a plan that does more harm than its command may do.
func bounded(plan Plan, command string) Plan {
	if most, _ := WorstOf(command); plan.Refused == "" && plan.Harm > most {
		plan.Refused = fmt.Sprintf("a defect in metal: metal %s must not do that. Please report it", command)
	}
	return plan
}

// harmOfCleaning returns the harm of the way to the pool, on which Ironic cleans a machine. Whether it does so at this site is not known.
func harmOfCleaning(node *ironic.Node) Harm {
	if node.AutomatedClean != nil && !*node.AutomatedClean {
		return Harmless
	}
	return Erases
}
