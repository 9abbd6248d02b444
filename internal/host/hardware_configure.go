package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
)

// KindNotThere is the kind of an error about steps that Ironic has run, and whose settings the machine does not have afterwards.
const KindNotThere failure.Kind = "not there"

// HardwareChange is a change of a machine's hardware configuration.
type HardwareChange struct {
	Want, Applied Hardware
	Live          bool             // change the deployed machine, by a service; else a manual cleaning
	NoRamdisk     bool             // run the steps without booting Ironic's ramdisk
	Once          bool             // no plan sets again what the machine does not keep
	Rollout       rollout.Settings // of a service, before which the machine waits for its turn
}

// ConfigureHardware gives the machine the wanted hardware configuration and reads it back. It does not send what the machine already has.
// Unless Live is set, it leaves the machine manageable. The time-out applies to each walk. open lists the parts that may not be on
// the machine afterwards. If the machine does not get its turn, the error is that of turns.Take.
func ConfigureHardware(ctx context.Context, m *machine.Machine, c HardwareChange, timeout time.Duration) (open []HardwarePart, err error) {
	open = c.Want.Work(c.Applied, HardwareSeen{}).Parts()
	if len(open) == 0 {
		return nil, nil
	}
	if c.Live { // Ironic accepts no note of a turn before that (reference/rollout.md#services)
		if err := m.ReachRest(ctx, c.Live, timeout); err != nil {
			return open, err
		}
	}
	if c.Live || states.InPool(m.Node()) { // leaving the pool costs a cleaning, and the turn may take hours to come
		work, _, err := c.work(ctx, m, open)
		if open = work.Parts(); err != nil || len(open) == 0 {
			return open, err
		}
	}
	if c.Live && states.IsOccupied(m.Node()) {
		return c.runInTurn(ctx, m, open, timeout)
	}
	return c.run(ctx, m, open, timeout) // Ironic services no machine on which nothing is deployed any more
}

// runInTurn waits for the turn of a deployed machine in its rollout, and then gives it what it lacks.
func (c HardwareChange) runInTurn(ctx context.Context, m *machine.Machine, open []HardwarePart,
	timeout time.Duration,
) ([]HardwarePart, error) {
	held := m.Node().InstanceUUID
	what := c.Want.fingerprint()
	m.Gets(what)
	turn, err := turns.Take(ctx, m, turns.Change{
		Settings: c.Rollout, Change: rollout.Service, Content: what, Limit: timeout,
	})
	if err != nil {
		return open, err
	}
	defer turn.Abandon(ctx) // does nothing after the turn has ended
	if err = machine.CheckReservation(m.Node(), held); err == nil {
		open, err = c.run(ctx, m, open, timeout)
	}
	err = m.Unwatched(ctx, err)
	if failure.Is(err, KindNotThere) { // the steps have ended, and the machine runs as before
		turn.EndBack(ctx, err)
	} else {
		turn.End(ctx, err)
	}
	return open, err
}

// work returns what the machine lacks of some parts, and what Ironic knows of it. With an error, the work is all of these parts.
func (c HardwareChange) work(ctx context.Context, m *machine.Machine, parts []HardwarePart) (work Hardware, seen HardwareSeen, err error) {
	work = c.Want.Only(parts)
	if seen, err = SeeHardware(ctx, m.Site(), m.Node(), parts); err != nil {
		return work, seen, err
	}
	work = work.Work(c.Applied, seen)
	if unfit := work.Unfit(seen); len(unfit) > 0 {
		return work, seen, unfitError(m.Node(), unfit)
	}
	return work, seen, nil
}

func (c HardwareChange) run(ctx context.Context, m *machine.Machine, open []HardwarePart, timeout time.Duration) ([]HardwarePart, error) {
	waits := states.InProgress(m.State())
	if err := m.ReachRest(ctx, c.Live, timeout); err != nil {
		return open, err
	}
	if waits && slices.Contains(open, PartRAID) { // a run that has ended early may have made the volumes, and polls have no raid_config
		if err := m.Refresh(ctx); err != nil {
			return open, err
		}
	}
	work, seen, err := c.work(ctx, m, open)
	if open = work.Parts(); err != nil || len(open) == 0 {
		return open, err
	}
	if work.RAID != nil && len(work.RAID.Volumes) > 0 {
		defer m.Preparing(machine.Preparation{Write: func(ctx context.Context) error {
			return m.Site().Ironic.SetRAID(ctx, m.Node().UUID, work.RAID.Volumes)
		}})()
	}
	server, err := m.Site().Ironic.Highest(ctx)
	if err != nil {
		return open, err
	}
	for _, part := range work.operations(server) {
		if err := m.RunSteps(ctx, c.Live, ironic.Order{Steps: part.Steps(seen), NoRamdisk: c.NoRamdisk}, timeout); err != nil {
			return open, err
		}
	}
	return readBack(ctx, m, work, c.Once)
}

// operations divides a configuration into what one cleaning can apply: all of it, or RAID and the rest. On older servers, a step that
// restarts the machine never ends after a RAID step that needed no restart (reference/ironic.md#steps-after-raid).
func (h Hardware) operations(server api.Microversion) []Hardware {
	raid, rest := h.Only([]HardwarePart{PartRAID}), h.Only([]HardwarePart{PartBIOS, PartFirmware})
	if server >= api.StepsAfterRAID || len(raid.Parts()) == 0 || len(rest.Parts()) == 0 {
		return []Hardware{h}
	}
	return []Hardware{raid, rest}
}

// readBack compares the machine with what was sent, because Ironic leaves some steps out without an error
// (reference/ironic.md#skipped-steps).
func readBack(ctx context.Context, m *machine.Machine, sent Hardware, once bool) (open []HardwarePart, err error) {
	if err := m.Refresh(ctx); err != nil {
		return sent.Parts(), err
	}
	seen, err := SeeHardware(ctx, m.Site(), m.Node(), sent.Parts())
	if err != nil {
		return sent.Parts(), err
	}
	lacks := sent.lacks(seen)
	if len(lacks) == 0 {
		return nil, nil
	}
	var facts []string
	for _, l := range lacks {
		facts = append(facts, l.fact)
		if !slices.Contains(open, l.part) {
			open = append(open, l.part)
		}
	}
	return open, skippedError(m.Node(), open, facts, once)
}

// SeeHardware reads what Ironic knows about parts of a machine's hardware. RAID is in the node itself, which must be complete.
func SeeHardware(ctx context.Context, site *machine.Site, node *ironic.Node, parts []HardwarePart) (seen HardwareSeen, err error) {
	for _, part := range parts {
		switch part {
		case PartRAID:
			seen.RAID = raidOf(node)
		case PartBIOS:
			seen.BIOS, err = site.Ironic.BIOS(ctx, node.UUID)
		case PartFirmware:
			seen.Firmware, err = site.Ironic.Firmware(ctx, node.UUID)
		}
		if err != nil {
			return seen, fmt.Errorf("read %s: %w", part, err)
		}
	}
	return seen, nil
}

// raidOf returns the volumes in a node's raid_config, as far as they can be read.
func raidOf(node *ironic.Node) []ironic.LogicalDisk {
	var config struct {
		LogicalDisks []ironic.LogicalDisk `json:"logical_disks"`
	}
	text, err := json.Marshal(node.RAIDConfig)
	if err == nil {
		_ = document.Decode(text, &config) // drivers may add what they like
	}
	return config.LogicalDisks
}

// unfitError says that a machine's BIOS registry refuses settings. Nothing was sent.
func unfitError(node *ironic.Node, unfit []Unfit) *failure.Error {
	reasons := make([]string, len(unfit))
	for i, u := range unfit {
		reasons[i] = u.Reason
	}
	return &failure.Error{
		Node: node, Fact: fmt.Sprintf("the BIOS of node %s does not accept bios_settings, and nothing was changed. %s",
			ironic.NodeLabel(node), strings.Join(reasons, " ")),
		Advice: "Correct bios_settings. The data source metal_host with include = [\"bios_settings\"] shows what the BIOS accepts.",
	}
}

// skippedError says that Ironic reported success, but the machine does not have what was to be changed.
func skippedError(node *ironic.Node, parts []HardwarePart, facts []string, once bool) *failure.Error {
	next := "The next apply tries again."
	if once {
		next = "The next plans name the difference, and do not set it again."
	}
	kinds := ironic.InterfacesOf(node)
	var used []string
	for _, part := range parts {
		kind, _, _ := strings.Cut(string(part), "_")
		used = append(used, fmt.Sprintf("%s = %q", kind, kinds[kind]))
	}
	return &failure.Error{
		Kind: KindNotThere, Node: node, Fact: fmt.Sprintf("node %s: Ironic reported success, but %s", ironic.NodeLabel(node),
			strings.Join(facts, ", and ")),
		Advice: fmt.Sprintf("Ironic skips steps that the node's interface does not have, without an error. Check that the node's "+
			"interfaces (%s) can do this, and the conductor's log. %s",
			strings.Join(used, ", "), next),
	}
}
