package show

import (
	"cmp"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Listed is a machine in a list of many. It contains no secret.
type Listed struct {
	NodeID            string           `json:"node_id"`
	NodeName          string           `json:"node_name"`
	ResourceClass     string           `json:"resource_class"`
	Owner             string           `json:"owner,omitempty"`
	Lessee            string           `json:"lessee,omitempty"`
	ProvisionState    string           `json:"provision_state"`
	PowerState        string           `json:"power_state"`
	InstanceUUID      string           `json:"instance_uuid,omitempty"`
	AllocationName    string           `json:"allocation_name,omitempty"`
	Image             string           `json:"image,omitempty"`
	LiveISO           string           `json:"live_iso,omitempty"`
	Retired           bool             `json:"retired"`
	Maintenance       bool             `json:"maintenance"`
	MaintenanceReason string           `json:"maintenance_reason,omitempty"`
	Fault             string           `json:"fault,omitempty"`
	Failed            bool             `json:"failed"`
	Failure           *machine.Failure `json:"failure,omitempty"`
	Health            string           `json:"health,omitempty"`
}

// ListedFields are the fields of nodes that List needs.
var ListedFields = []string{
	"uuid", "name", "resource_class", "provision_state", "power_state", "target_power_state", "instance_uuid", "instance_info", "retired",
	"maintenance", "maintenance_reason", "fault", "last_error", "reservation", "health",
}

// List converts a node of a list with ListedFields, and the name of the allocation that has it.
func List(n *ironic.Node, allocation string) Listed {
	l := Listed{
		NodeID: n.UUID, NodeName: n.Name, ResourceClass: n.ResourceClass, Owner: n.Owner, Lessee: n.Lessee,
		ProvisionState: n.ProvisionState, PowerState: n.PowerState, InstanceUUID: n.InstanceUUID, AllocationName: allocation,
		Retired: n.Retired, Maintenance: n.Maintenance, MaintenanceReason: n.MaintenanceReason, Fault: n.Fault,
		Failed: states.OperationFailed(n), Failure: machine.FailureOf(n), Health: n.Health,
	}
	if states.IsOccupied(n) {
		l.Image, l.LiveISO = rest.PlainURL(states.TextOf(n.InstanceInfo, "image_source")), rest.PlainURL(deploy.BootISOURL(n))
	}
	return l
}

// Trouble says in a few words why a node needs a look, the worst first; "" if it needs none.
func (l *Listed) Trouble() string {
	var all []string
	switch {
	case l.Failure != nil:
		all = append(all, cmp.Or(l.Failure.Reason, api.FirstLine(l.Failure.Words)))
	case l.Failed:
		all = append(all, "failed")
	}
	if l.Fault != "" {
		all = append(all, "fault: "+l.Fault)
	} else if l.Maintenance {
		all = append(all, strings.TrimSuffix("maintenance: "+l.MaintenanceReason, ": "))
	}
	if l.Retired {
		all = append(all, "retired")
	}
	return strings.Join(all, "; ")
}
