// Package show tells what is known of one machine: what it is, who holds it, what runs on it, what has failed, and what an operator can do
// next. It is pure: it makes no request.
package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// Description tells what a machine is, who holds it and what it does. It contains no secret.
type Description struct {
	ID             string   `json:"node_id"`
	Name           string   `json:"node_name"`
	Description    string   `json:"description,omitempty"`
	ResourceClass  string   `json:"resource_class"`
	Traits         []string `json:"traits,omitempty"`
	ConductorGroup string   `json:"conductor_group,omitempty"`
	Conductor      string   `json:"conductor,omitempty"`
	Hardware       string   `json:"hardware,omitempty"`   // such as "x86_64, 16 CPUs, 65536 MiB, 480 GiB"
	KeptDisks      []string `json:"kept_disks,omitempty"` // that a cleaning keeps, by skip_block_devices
	Driver         string   `json:"driver"`
	BMC            string   `json:"bmc_address,omitempty"`
	BootInterface  string   `json:"boot_interface,omitempty"`
	MACs           []string `json:"macs"` // of its ports, in their order
	Owner          string   `json:"owner,omitempty"`
	Lessee         string   `json:"lessee,omitempty"`

	Held Holder `json:"held_by"`

	State             string     `json:"provision_state"`
	Since             *time.Time `json:"provision_updated_at,omitempty"`
	Power             string     `json:"power_state"`
	Health            string     `json:"health,omitempty"` // as the BMC reports it
	BootMode          string     `json:"boot_mode,omitempty"`
	SecureBoot        *bool      `json:"secure_boot,omitempty"`
	Image             string     `json:"image,omitempty"`    // without credentials and query
	LiveISO           string     `json:"live_iso,omitempty"` // without credentials and query
	Protected         bool       `json:"protected"`
	Retired           bool       `json:"retired"`
	RetiredReason     string     `json:"retired_reason,omitempty"`
	Maintenance       bool       `json:"maintenance"`
	MaintenanceReason string     `json:"maintenance_reason,omitempty"`

	Operation string `json:"operation,omitempty"` // in progress
	LockedBy  string `json:"locked_by,omitempty"` // a conductor

	Fault     string           `json:"fault,omitempty"`
	LastError string           `json:"last_error,omitempty"`
	Failure   *machine.Failure `json:"failure,omitempty"`  // what last_error means
	Evidence  []string         `json:"evidence,omitempty"` // what was looked up about the cause, each with what it proves
	Failures  int              `json:"failures"`           // since the last success
	History   []string         `json:"history"`            // the last errors of its history, the oldest first

	Notes  []notes.Note `json:"notes"`
	Next   []string     `json:"next"`
	Hidden []string     `json:"hidden"` // what Ironic does not show to this user, so that it is missing here and in Next
}

// Holder is who holds a machine.
type Holder struct {
	Instance        string         `json:"instance_uuid,omitempty"`
	InstanceName    string         `json:"instance_name,omitempty"`
	AllocationID    string         `json:"allocation_id,omitempty"`
	AllocationName  string         `json:"allocation_name,omitempty"`
	AllocationExtra map[string]any `json:"allocation_extra,omitempty"`
	Run             string         `json:"run,omitempty"` // of Terraform, by its mark
	Hardware        string         `json:"oneview_server_hardware_uri,omitempty"`
	Profile         string         `json:"oneview_server_profile_uri,omitempty"`
}

// Inspected adds to the kept disks which disks of the last inspection they are.
func (d *Description) Inspected(n *ironic.Node, all []ironic.Disk) {
	for i, hint := range disks.HintsOf(n.Properties) {
		s := disks.SplitBy([]disks.Hint{hint}, all)
		found := disks.Labels(s.Kept)
		if s.Open {
			found = "only Ironic's agent can compare that"
		}
		d.KeptDisks[i] = hint.String() + ": " + found
	}
}

// lastErrors is how many errors of the history a description has.
const lastErrors = 5

// Describe describes a node at a time by Ironic's clock. macs are the addresses of its ports. allocation is the one that has reserved it;
// nil: none, or the user may not see it. history is that of the node, the oldest event first.
func Describe(n *ironic.Node, macs []string, allocation *ironic.Allocation, history []ironic.Event, now time.Time) *Description {
	d := &Description{
		ID: n.UUID, Name: n.Name, Description: n.Description, ResourceClass: n.ResourceClass, Traits: n.Traits,
		ConductorGroup: n.ConductorGroup, Conductor: n.Conductor,
		Hardware: hardware(n.Properties), Driver: n.Driver, BMC: driverinfo.BMCAddress(n.DriverInfo), BootInterface: n.BootInterface,
		MACs:  append([]string{}, macs...),
		Owner: n.Owner, Lessee: n.Lessee,
		Held:  holderOf(n, allocation),
		State: n.ProvisionState, Power: n.PowerState, Health: n.Health, BootMode: n.BootMode, SecureBoot: n.SecureBoot,
		Protected: n.Protected,
		Retired:   n.Retired, RetiredReason: n.RetiredReason, Maintenance: n.Maintenance, MaintenanceReason: n.MaintenanceReason,
		Operation: operation(n), LockedBy: n.Reservation, Fault: n.Fault, LastError: n.LastError,
		Failure: machine.FailureOf(n), Failures: notes.Failures(n),
		History: []string{}, Notes: notes.Told(n, now), Next: NextSteps(n, now),
	}
	for _, hint := range disks.HintsOf(n.Properties) {
		d.KeptDisks = append(d.KeptDisks, hint.String())
	}
	if !n.ProvisionUpdatedAt.IsZero() {
		d.Since = &n.ProvisionUpdatedAt
	}
	if states.IsOccupied(n) {
		d.Image, d.LiveISO = rest.PlainURL(states.TextOf(n.InstanceInfo, "image_source")), rest.PlainURL(deploy.BootISOURL(n))
	}
	for _, e := range history {
		if e.Severity == "ERROR" {
			d.History = append(d.History, e.CreatedAt.UTC().Format(time.RFC3339)+" "+e.Event)
		}
	}
	d.History = d.History[max(0, len(d.History)-lastErrors):]
	d.Hidden = hidden(n)
	return d
}

// hidden returns the fields of a node that Ironic does not show to this user.
func hidden(n *ironic.Node) []string {
	fields := []string{}
	for _, f := range []struct {
		name   string
		hidden bool
	}{
		{"last_error", n.Hidden.LastError},
		{"reservation", n.Hidden.Reservation},
		{"driver_info", n.Hidden.DriverInfo},
		{"driver_internal_info", n.Hidden.DriverInternalInfo},
	} {
		if f.hidden {
			fields = append(fields, f.name)
		}
	}
	return fields
}

func holderOf(n *ironic.Node, allocation *ironic.Allocation) Holder {
	h := Holder{Instance: n.InstanceUUID, InstanceName: n.InstanceName, AllocationID: n.AllocationUUID}
	mark := notes.CreationOf(n.Extra, notes.MarkReservation)
	if mark != nil && mark.Instance != n.InstanceUUID {
		mark = nil
	}
	if allocation != nil {
		h.AllocationName, h.AllocationExtra = allocation.Name, map[string]any{}
		for key, value := range allocation.Extra {
			if !notes.OwnKey(key) {
				h.AllocationExtra[key] = value
			}
		}
		if mark == nil {
			mark = notes.CreationOf(allocation.Extra, notes.MarkCreation)
		}
	}
	if mark != nil {
		h.Run = runOf(mark)
	}
	if binding, err := sharing.BindingOf(n); err == nil {
		h.Hardware, h.Profile = binding.HardwareURI, binding.AppliedURI
	}
	return h
}

// runOf names the run of a mark, and says whether it has finished.
func runOf(mark *notes.Creation) string {
	if mark.Done.IsZero() {
		return mark.String() + ", and is at work or was killed"
	}
	return fmt.Sprintf("%s, and ended at %s", mark, mark.Done.UTC().Format(time.RFC3339))
}

// operation says what is in progress on a node; "" if nothing is.
func operation(n *ironic.Node) string {
	state := ironic.State(n.ProvisionState)
	text := ""
	switch {
	case states.InProgress(state), states.Held(state):
		text = n.ProvisionState
	case n.TargetPowerState != "":
		return "power changes to " + n.TargetPowerState
	}
	if text != "" && n.TargetProvisionState != "" {
		text += ", on the way to " + n.TargetProvisionState
	}
	for _, step := range []map[string]any{n.DeployStep, n.CleanStep, n.ServiceStep} {
		if name := states.StepName(step); text != "" && name != "" {
			text += ", step " + name
		}
	}
	return text
}

// hardware says in one line what properties tell of the hardware; "" if they tell nothing.
func hardware(properties map[string]any) string {
	var parts []string
	for _, p := range []struct {
		key, unit string
	}{{"vendor", ""}, {"cpu_arch", ""}, {"cpus", " CPUs"}, {"memory_mb", " MiB"}, {"local_gb", " GiB"}} {
		if value, _ := ironic.Scalar(properties[p.key]); value != "" {
			parts = append(parts, value+p.unit)
		}
	}
	return strings.Join(parts, ", ")
}
