// Package survey reads from an Ironic what a forecast needs: machines with an operation in progress, machines of other runs that wait,
// members of rollout groups that are away, and how long cleanings took. It changes nothing.
package survey

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Found is what a site says.
type Found struct {
	Site    forecast.Site
	Times   forecast.Times // from the notes of cleanings on the nodes
	Notes   []string
	nodes   map[string]*ironic.Node // by UUID and by name
	learned []learned               // by class
}

// fields are the fields of the list of nodes.
var fields = []string{
	"uuid", "name", "provision_state", "provision_updated_at", "power_state", "target_power_state", "target_provision_state",
	"instance_uuid", "extra", "resource_class",
	"conductor_group", "boot_interface", "maintenance", "fault", "last_error", "shard",
}

// Read reads a site.
func Read(ctx context.Context, site *machine.Site) (*Found, error) {
	nodes, err := site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{}, fields)
	if err != nil {
		return nil, err
	}
	now := site.Ironic.ServerNow()
	f := &Found{Site: forecast.Site{Now: now, Away: map[string][]rollout.Absence{}}, nodes: map[string]*ironic.Node{}}
	for i := range nodes {
		n := &nodes[i]
		f.nodes[n.UUID] = n
		if n.Name != "" {
			f.nodes[n.Name] = n
		}
		m := slots.MachineOf(n)
		if !m.Busy {
			m.Since = now // the power change began a moment ago
		}
		if m.Busy || m.Starting {
			f.Site.Occupied = append(f.Site.Occupied, forecast.Occupied{Machine: m, Does: doing(n), Class: n.ResourceClass})
		}
	}
	f.noteTimes(nodes)
	if f.Site.Waiting, err = slots.NewLimiter(site.Ironic, throttle.Limit{}, "").Waiting(ctx); err != nil {
		more := ""
		if len(f.Site.Waiting) > 0 {
			more = "more "
		}
		f.Notes = append(f.Notes, fmt.Sprintf("whether %smachines of other runs wait for a slot is not known: %v", more, err))
	}
	return f, f.readAbsences(ctx, site, nodes)
}

// doing returns what Ironic does with a node, and what follows in the same slot.
func doing(n *ironic.Node) []forecast.Operation {
	switch state := ironic.State(n.ProvisionState); {
	case states.BeingDeployed(state):
		return []forecast.Operation{forecast.Deploy}
	case states.BeingInspected(state):
		return []forecast.Operation{forecast.Inspect}
	case n.ProvisionState == "deleting":
		return []forecast.Operation{forecast.Undeploy, forecast.Clean}
	case n.ProvisionState == "servicing" || n.ProvisionState == "service wait":
		return []forecast.Operation{forecast.Service}
	case n.ProvisionState == "cleaning" || n.ProvisionState == "clean wait":
		return []forecast.Operation{forecast.Clean}
	case !states.InProgress(state):
		return []forecast.Operation{forecast.PowerOn}
	}
	return nil
}

// noteTimes takes the median of the cleanings that runs have noted on the nodes, by class.
func (f *Found) noteTimes(nodes []ironic.Node) {
	took := map[string][]time.Duration{}
	for i := range nodes {
		if e := notes.ErasureOf(&nodes[i]); e != nil && !e.Failed && e.Ended.After(e.Began) {
			took[nodes[i].ResourceClass] = append(took[nodes[i].ResourceClass], e.Ended.Sub(e.Began))
		}
	}
	f.Times = make(forecast.Times)
	for _, class := range slices.Sorted(maps.Keys(took)) {
		all := took[class]
		slices.Sort(all)
		if f.Times[forecast.Clean] == nil {
			f.Times[forecast.Clean] = forecast.ByClass{}
		}
		f.Times[forecast.Clean][class] = all[len(all)/2]
		f.learned = append(f.learned, learned{class, len(all)})
	}
}

// learned is how many notes tell how long the cleaning of a class takes.
type learned struct {
	class string
	notes int
}

// Learned says which times the forecast takes from notes on nodes, because they are not given.
func (f *Found) Learned(given forecast.Times) (lines []string) {
	for _, l := range f.learned {
		if _, known := given.Of(forecast.Clean, l.class); !known {
			lines = append(lines, fmt.Sprintf("clean of class %s: %s, the median of the notes on %d nodes", l.class,
				f.Times[forecast.Clean][l.class].Round(time.Second), l.notes))
		}
	}
	return lines
}

func (f *Found) readAbsences(ctx context.Context, site *machine.Site, nodes []ironic.Node) error {
	alive := map[string]bool{}
	for i := range nodes {
		n := &nodes[i]
		for _, note := range notes.TurnsOf(n) {
			if _, known := alive[note.Run]; !known {
				standing, err := site.Locks().Look(ctx, turns.SignalOf(note.Run))
				if err != nil {
					return fmt.Errorf("read whether the run that changes node %s is alive: %w", ironic.NodeLabel(n), err)
				}
				alive[note.Run] = standing == throttle.Held
			}
			sign := turns.Sign{Alive: alive[note.Run], Silent: turns.AskFor}
			a := turns.AbsenceOf(n, note, sign, f.Site.Now)
			if !a.Until.IsZero() {
				a.Until = f.Site.Now.Add(note.Rest(f.Site.Now)) // by Ironic's clock, as everything here
			}
			f.Site.Away[note.Group] = append(f.Site.Away[note.Group], a)
		}
	}
	return nil
}

// Complete adds what the site knows of the machines of a plan. It returns an error of forecast.KindUnknown with the nodes that do not
// exist.
func (f *Found) Complete(steps []forecast.Step) error {
	var missing, deployed []string
	done := map[*forecast.Target]bool{}
	for i := range steps {
		m := steps[i].Machine
		if m == nil {
			continue
		}
		n := f.nodes[m.ID]
		if n == nil && m.Unknown == "" && !m.New {
			missing = append(missing, fmt.Sprintf("node %s of %s: this Ironic has none of that UUID or name. Is --endpoint the site of "+
				"the plan?", m.ID, steps[i].Address))
		}
		if n == nil {
			continue
		}
		if !done[m] {
			done[m] = true
			was := m.Machine
			m.Machine, m.Class, m.Failures = slots.MachineOf(n), n.ResourceClass, notes.Failures(n)
			m.Name = cmp.Or(m.Name, was.Name)
		}
		if steps[i].Prepares && len(steps[i].Legs) > 0 && states.IsOccupied(n) {
			steps[i].Legs = nil
			deployed = append(deployed, steps[i].Address)
		}
		if steps[i].Turn != nil {
			steps[i].Turn.Away = states.Failed(ironic.State(n.ProvisionState)) || steps[i].Turn.Change == rollout.Replacement &&
				!states.IsOccupied(n)
		}
	}
	if len(deployed) > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("what hosts do to machines on which something is deployed is not counted: %s",
			forecast.Few(deployed)))
	}
	if len(missing) > 0 {
		return forecast.Lacks(missing)
	}
	return nil
}
