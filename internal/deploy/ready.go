package deploy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/readiness"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// AwaitReady waits until what runs on a machine answers. While it waits, and after it has failed, a note on the node says so. It returns an
// error of failure.KindNotReady if the time is over; next says what to do then, besides the advice about the cause.
func AwaitReady(ctx context.Context, m *machine.Machine, check readiness.Check, next string) error {
	check.Dial = m.Site().Config().Dial
	label := ironic.NodeLabel(m.Node())
	note := notes.Checked{Since: serverNow(m), Target: check.Target()}
	if err := noteCheck(ctx, m, note); err != nil {
		return err
	}
	err := check.Wait(m.About(ctx), func(text string) {
		m.Site().Ironic.Logger().InfoContext(ctx, "machine "+label+" "+text, machine.NodeAttributes(m.Node())...)
	})
	if late, is := err.(*readiness.Error); is { //nolint:errorlint // Wait does not wrap it
		return notReady(ctx, m, note, late, next)
	}
	if _, noted := m.Node().Extra[notes.KeyReady]; noted {
		removeCheck(ctx, m)
	}
	return err
}

// notReady returns the error of a check that has failed. If Ironic says that what is deployed does not run, that is the cause.
func notReady(ctx context.Context, m *machine.Machine, note notes.Checked, late *readiness.Error, next string) error {
	held := m.Node().InstanceUUID
	_ = m.Refresh(ctx) // on failure the record stays as last seen
	note.Failed = serverNow(m)
	e := &failure.Error{
		Kind: failure.KindNotReady, Node: m.Node(), About: late, Err: late, Advice: late.Advice() + " The machine keeps running. " + next,
		Fact: fmt.Sprintf("node %s runs what was deployed on it, and is not ready: %s", ironic.NodeLabel(m.Node()), late),
	}
	ended := m.Node().InstanceUUID != held || !states.IsOccupied(m.Node())
	if is, advice := stands(m.Node(), held); is != "" {
		e.Fact = fmt.Sprintf("node %s is not ready, because it %s: %s", ironic.NodeLabel(m.Node()), is, late)
		e.Advice, e.Words = strings.TrimSpace(advice+" "+next), api.FirstLine(m.Node().LastError)
		if ended {
			e.Advice = advice + " The next plan says what its apply does."
		}
	}
	if ended {
		removeCheck(ctx, m)
		return e
	}
	endNote(ctx, m, ironic.Patch{}.With("/extra/"+notes.KeyReady, note))
	return e
}

// stands says why, as Ironic knows it, what is deployed on a machine for a reservation does not run, and what to do; "" if it may run.
func stands(n *ironic.Node, held string) (is, advice string) {
	state, name := ironic.State(n.ProvisionState), ironic.NodeArgument(n)
	is = fmt.Sprintf("is in state %q", state)
	switch {
	case n.InstanceUUID != "" && n.InstanceUUID != held:
		is, advice = "is reserved by "+n.InstanceUUID+" now", "Find out who uses the machine."
	case !states.IsOccupied(n):
		is, advice = is+", and nothing is deployed on it any more", "Find out who has undeployed it."
	case RescueOf(state) == Rescued:
		is, advice = "is in rescue mode", "End the rescue: metal unrescue "+name+"."
	case states.InProgress(state):
		is, advice = is+", so Ironic is at work on it", "Wait for the end of that: metal watch "+name+"."
	case state != stateActive:
		advice = "See what Ironic says: metal show " + name + "."
	case machine.Power(n) == string(PowerOff):
		is, advice = "is off", "Switch it on: metal power on "+name+", or power_state = \"on\" in its metal_deployment."
	case n.Fault != "":
		is, advice = "has a fault ("+n.Fault+")", "Ironic does not reach its BMC, and does not know whether it is on. Look at both."
	default:
		return "", ""
	}
	if n.Maintenance {
		is += " and in maintenance" + strings.TrimSuffix(afterColon(n.MaintenanceReason), ".")
	}
	return is, advice
}

// ForgetCheck removes the note of a ready check that has failed, when what runs on the machine is not checked any more. It sends nothing if
// its node has none.
func ForgetCheck(ctx context.Context, m *machine.Machine) {
	if notes.NotReadyOf(m.Node()) != nil {
		removeCheck(ctx, m)
	}
}

// serverNow is the time for a note, by the clock of the site.
func serverNow(m *machine.Machine) time.Time {
	return m.Site().Ironic.ServerNow().UTC().Truncate(time.Second)
}

// noteCheck notes on the node that a check is in progress, and replaces what a killed run has left. The check does not depend on
// the note: the user may lack the right to write it.
func noteCheck(ctx context.Context, m *machine.Machine, note notes.Checked) error {
	err := m.Patch(ctx, ironic.Patch{}.With("/extra/"+notes.KeyReady, note))
	if notes.IsSuperseded(err) || ctx.Err() != nil {
		return err
	}
	return nil
}

func removeCheck(ctx context.Context, m *machine.Machine) {
	var patch ironic.Patch
	patch.Remove("/extra/" + notes.KeyReady)
	endNote(ctx, m, patch)
}

// endNote changes the note at the end of a check, also if the run was stopped. It only logs a failure.
func endNote(ctx context.Context, m *machine.Machine, patch ironic.Patch) {
	err := m.Patch(ctx, patch)
	if err != nil && ctx.Err() != nil {
		stopped, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteFor)
		defer cancel()
		err = m.Patch(stopped, patch)
	}
	if err != nil {
		m.Site().Ironic.Logger().DebugContext(ctx, "could not change the note of a ready check", "error", api.FirstLine(err.Error()))
	}
}

// noteFor is how long changing the note may take after the user has stopped the run.
const noteFor = 30 * time.Second
