package instance

import (
	"context"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/readiness"
)

// KindNotReady is the kind of an error which says that what runs on a machine did not answer its ready check in time.
const KindNotReady failure.Kind = "not-ready"

// AwaitReady waits until what runs on a machine answers. While it waits, a note on the node says so. It returns an error of KindNotReady
// if the time is over; next says what to do then, besides the advice about the cause.
func AwaitReady(ctx context.Context, m *machine.Machine, check readiness.Check, next string) error {
	check.Dial = m.Site().Config().Dial
	label := ironic.NodeLabel(m.Node())
	if err := noteCheck(ctx, m, check); err != nil {
		return err
	}
	err := check.Wait(m.About(ctx), func(text string) {
		m.Site().Ironic.Logger().InfoContext(ctx, "machine "+label+" "+text, machine.NodeAttributes(m.Node())...)
	})
	endNote(ctx, m)
	if late, is := err.(*readiness.Error); is { //nolint:errorlint // Wait does not wrap it
		return &failure.Error{
			Kind: KindNotReady, Node: m.Node(), About: late, Err: late, Advice: late.Advice() + " " + next,
			Fact: fmt.Sprintf("node %s runs what was deployed on it, and is not ready: %s", label, late),
		}
	}
	return err
}

// noteCheck notes on the node that a check is in progress, and replaces what a killed run has left. The check does not depend on
// the note: the user may lack the right to write it.
func noteCheck(ctx context.Context, m *machine.Machine, check readiness.Check) error {
	note := marks.Checked{Since: m.Site().Ironic.ServerNow().UTC().Truncate(time.Second), Target: check.Target()}
	err := m.Patch(ctx, ironic.Patch{}.With("/extra/"+marks.KeyReady, note))
	if marks.IsSuperseded(err) || ctx.Err() != nil {
		return err
	}
	return nil
}

// endNote removes the note, also if the run was stopped.
func endNote(ctx context.Context, m *machine.Machine) {
	if _, noted := m.Node().Extra[marks.KeyReady]; !noted {
		return
	}
	var patch ironic.Patch
	patch.Remove("/extra/" + marks.KeyReady)
	err := m.Patch(ctx, patch)
	if err != nil && ctx.Err() != nil {
		stopped, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteFor)
		defer cancel()
		err = m.Patch(stopped, patch)
	}
	if err != nil {
		m.Site().Ironic.Logger().DebugContext(ctx, "could not remove the note of a ready check", "error", api.FirstLine(err.Error()))
	}
}

// noteFor is how long removing the note may take after the user has stopped the run.
const noteFor = 30 * time.Second
