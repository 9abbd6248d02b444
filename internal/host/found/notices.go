package found

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
)

// LeavingHosts warns of the machines that hosts loses if the discovery gets another name.
func LeavingHosts(n int, discovery string) decide.Notice {
	return decide.Warn(decide.At("name"), "Machines leave hosts",
		fmt.Sprintf("%s will leave hosts. Their nodes keep the mark of %s. Terraform destroys the resources that you make of hosts for "+
			"them, and a metal_host deletes its node. To keep the machines, leave name as it is. You can change the template without "+
			"changing name.", Machines(n), discovery))
}

// WarnPending warns of pending machines. Each line names one and its reason; the warning has the first few.
func WarnPending(lines []string) []decide.Notice {
	if len(lines) == 0 {
		return nil
	}
	return []decide.Notice{decide.Warn(decide.At("pending"), "Discovered machines are pending", describePending(lines))}
}

func describePending(lines []string) string {
	const few = 10
	slices.Sort(lines)
	if len(lines) > few {
		lines = append(lines[:few], fmt.Sprintf("and %d more, see the attribute pending", len(lines)-few))
	}
	return strings.Join(lines, "\n")
}

// PendingUnread says that the machines which are pending after an apply could not be read, and why.
func PendingUnread(why string) decide.Notice {
	return decide.Warn(decide.At("pending"), "Pending machines could not be read", "The next refresh reads them again. "+why)
}

// Machines returns "1 machine", or how many.
func Machines(n int) string {
	if n == 1 {
		return "1 machine"
	}
	return fmt.Sprintf("%d machines", n)
}

// WarnLate warns of nodes that their own claims have reserved again.
func WarnLate(names []string) decide.Notice {
	return decide.Warn(nil, "Discovered nodes are still reserved", "A request by which this discovery claimed them has reached Ironic "+
		"late, after they were named, and reserves them without a use. The apply releases them: "+strings.Join(names, ", ")+".")
}
