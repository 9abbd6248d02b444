package operate

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/operation"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// Outcome is how an operation on one machine has ended.
type Outcome string

// The outcomes.
const (
	Done        Outcome = "done"
	Unchanged   Outcome = "unchanged"   // there was nothing to do
	Refused     Outcome = "refused"     // nothing was sent
	Failed      Outcome = "failed"      // the machine may have changed
	Interrupted Outcome = "interrupted" // Ironic goes on with what was started
	NotBegun    Outcome = "not begun"   // the command ended before
	Planned     Outcome = "planned"     // a dry run: it would be done
)

// Result is how an operation on one machine has ended.
type Result struct {
	Node    *ironic.Node // as it was read last
	Plan    Plan
	Outcome Outcome
	Err     error         // of Failed, Refused and Interrupted
	Left    string        // what it has not done and how it is done, in sentences, unless it is done; empty: nothing is left half done
	Note    string        // what a user must know after it; empty: nothing
	Took    time.Duration // including the time that the machine waited for a slot
}

// Task is a machine on which an operation is to be done, with what the operator was told about it and has confirmed.
type Task struct {
	Node *ironic.Node
	Told Plan
	Left string // the operation of metal that has not ended on it, as a sentence; empty: none
}

// Tasks returns machines with what an operation does to them now.
func Tasks(op Operation, machines []ironic.Node, seen Seen) []Task {
	tasks := make([]Task, len(machines))
	for i := range machines {
		node := &machines[i]
		tasks[i] = Task{Node: node, Told: op.Plan(node, seen), Left: unfinishedOn(node, seen.Now)}
	}
	return tasks
}

// unfinishedOn says which operation has not ended on a machine, as a sentence; "" if there is none.
func unfinishedOn(node *ironic.Node, now time.Time) string {
	left := notes.UnfinishedOperation(node, now)
	if left == nil {
		return ""
	}
	fate := ", is at work or was killed"
	if !left.Failed.IsZero() {
		fate = ""
	}
	return fmt.Sprintf("node %s: %s%s: %s", ironic.NodeLabel(node), left, fate, left.Left())
}

// changed says why what was confirmed is not what the operation does to a machine now; "" if it is. Nobody was asked about a machine that
// was refused or needed nothing.
func (t Task) changed(op Operation, node *ironic.Node, now Plan) string {
	told := t.Told.Harm
	if t.Told.Nothing || t.Told.Refused != "" {
		told = Harmless
	}
	switch {
	case now.Harm > told, now.Harm > Harmless && now.isOther(t.Told):
		return "now metal " + op.Command + " " + now.Does + ", which was not confirmed"
	case now.AtWork != "" && now.AtWork != t.Told.AtWork:
		return now.AtWork + ", may be at work on it now"
	case now.Harm >= Cuts && node.InstanceUUID != t.Node.InstanceUUID:
		return "it has another reservation now"
	case now.Harm > Harmless:
		return machine.AssumedOf(t.Node).Changes(node)
	}
	return ""
}

// Runner does operations.
type Runner struct {
	Site     *machine.Site
	Parallel int           // how many machines it works on at once; the provisioning limit holds besides
	Timeout  time.Duration // zero: that of the operation

	By string // for notes on nodes: Operator

	// Tell reports what happens to a machine while an operation is in progress.
	Tell func(node *ironic.Node, status string)
	// End reports the result of each machine, when it has ended.
	End func(Result)
}

// Operator names who runs a program, for notes on nodes: user and computer. getenv is as os.Getenv.
func Operator(getenv func(string) string) string {
	name := cmp.Or(getenv("USER"), getenv("USERNAME"), "unknown")
	if who, err := user.Current(); err == nil {
		name = who.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// Run does an operation on machines, and returns their results in the order of the tasks. When ctx ends, it begins no other machine, and
// waits until those in progress have said where they are.
func (r *Runner) Run(ctx context.Context, op Operation, tasks []Task) []Result {
	results := make([]Result, len(tasks))
	routine.Each(len(tasks), r.Parallel, func(i int) error { //nolint:errcheck // one stores it in the result
		results[i] = Result{Node: tasks[i].Node, Outcome: NotBegun}
		if ctx.Err() == nil {
			began := time.Now()
			results[i] = r.one(ctx, op, tasks[i])
			results[i].Took = time.Since(began)
		}
		r.end(results[i])
		return nil
	})
	return results
}

func (r *Runner) end(result Result) {
	if r.End != nil {
		r.End(result)
	}
}

// one does an operation on a machine, if that is what was confirmed: it is decided again with the machine as it is now.
func (r *Runner) one(ctx context.Context, op Operation, task Task) (end Result) {
	ctx, traced := operation.Begin(ctx, op.Command, task.Node, r.Site.Ironic)
	defer func() { traced.End(end.Err) }()
	defer func() {
		if cause := recover(); cause != nil {
			end = result(task.Node, Plan{}, r.defect(ctx, op, task.Node, cause))
		}
	}()
	m, done, err := r.Site.Operate(ctx, task.Node.UUID)
	if err != nil {
		return result(task.Node, Plan{}, err)
	}
	defer done()
	m.PartOf(traced)
	plan := op.Plan(m.Node(), Look(ctx, r.Site, []ironic.Node{*m.Node()}))
	end = r.execute(ctx, op, m, plan, task.changed(op, m.Node(), plan))
	end.Left = leftBy(end, r.Site.Ironic.ServerNow(), "run")
	return end
}

// Invoke does an operation on a machine, by name or UUID, of which nobody is asked to confirm anything, because an action wants it. The
// result has no node if it could not be read.
func (r *Runner) Invoke(ctx context.Context, op Operation, ref string) Result {
	if err := op.Offered(ctx, r.Site.Ironic); err != nil {
		return result(nil, Plan{}, err)
	}
	m, done, err := r.Site.Operate(ctx, ref)
	if err != nil {
		return result(nil, Plan{}, err)
	}
	defer done()
	now := r.Site.Ironic.ServerNow()
	if left := unfinishedOn(m.Node(), now); left != "" {
		r.Tell(m.Node(), left)
	}
	r.follow(m)
	end := r.execute(ctx, op, m, op.Plan(m.Node(), Seen{Now: now}), "")
	end.Left = leftBy(end, r.Site.Ironic.ServerNow(), "invoke the action again, or run")
	return end
}

// follow tells the states of a machine.
func (r *Runner) follow(m *machine.Machine) {
	if r.Tell != nil {
		m.Tell(func(status string) { r.Tell(m.Node(), status) })
	}
}

// execute does what an operation was decided to do to a machine. changed says why that is not what was confirmed; "" if it is.
func (r *Runner) execute(ctx context.Context, op Operation, m *machine.Machine, plan Plan, changed string) Result {
	switch {
	case plan.Refused != "":
		return result(m.Node(), plan, machine.RefusedFor(m.Node(), plan.Refused))
	case plan.Nothing:
		return Result{Node: m.Node(), Plan: plan, Outcome: Unchanged}
	case changed != "":
		return result(m.Node(), plan, machine.RefusedFor(m.Node(), "it has changed since the command began: "+changed+
			". Run the command again"))
	}
	if op.Stops != "" {
		m.Gets("metal " + op.Command)
	}
	if err := m.InVain(op.Stops); err != nil {
		return result(m.Node(), plan, err)
	}
	r.follow(m)
	timeout := op.Timeout
	if r.Timeout > 0 {
		timeout = r.Timeout
	}
	warning, err := r.noted(ctx, op, m, timeout)
	end := result(m.Node(), plan, err)
	if end.Outcome == Refused && m.Acted() {
		end.Outcome = Failed
	}
	said := []string{warning}
	if end.Outcome == Done && op.Note != nil {
		said = append(said, op.Note(end.Node))
	}
	if end.Outcome == Done {
		said = append(said, plan.Before)
	}
	end.Note = strings.Join(slices.DeleteFunc(said, func(text string) bool { return text == "" }), "; ")
	return end
}

// leftBy says what an operation that has not ended has left to do on a machine, and how that is done, in sentences; "" if there is nothing.
// how says what to do with the command that does it.
func leftBy(end Result, now time.Time, how string) string {
	node := end.Node
	if end.Outcome != Failed && end.Outcome != Interrupted {
		return ""
	}
	if spec := notes.SuspendedAllocation(node); spec != nil && (node.InstanceUUID != spec.UUID || states.LosesReservation(node)) {
		return fmt.Sprintf("Allocation %s, which Ironic deletes with what is deployed, is not created again yet: without it, others can "+
			"reserve the machine. The next apply does that. To do it now, run: metal undeploy %s",
			cmp.Or(spec.Name, spec.UUID), ironic.NodeArgument(node))
	}
	if o := notes.UnfinishedOperation(node, now); o != nil {
		left := o.Left()
		return fmt.Sprintf("%s. To do the rest, %s: %s", strings.ToUpper(left[:1])+left[1:], how, o.Again(node))
	}
	return ""
}

// defect is the error of a machine whose operation has ended in a panic. The operations on other machines go on.
func (r *Runner) defect(ctx context.Context, op Operation, node *ironic.Node, cause any) error {
	label := ironic.NodeLabel(node)
	r.Site.Ironic.Logger().ErrorContext(ctx, "panic in the operation on machine "+label, append(machine.NodeAttributes(node), "panic",
		fmt.Sprint(cause), "stack", string(debug.Stack()))...)
	const action = "Look at the machine with metal show, because Ironic goes on with what was started. Please report the defect, with " +
		"the stack trace that --log-level error writes."
	return &failure.Error{
		Node: node, Fact: fmt.Sprintf("node %s: a defect in metal has ended metal %s: %v", label, op.Command, cause),
		Action: action,
	}
}

func result(node *ironic.Node, plan Plan, err error) Result {
	end := Result{Node: node, Plan: plan, Outcome: Done, Err: err}
	switch {
	case err == nil:
	case failure.IsInterrupted(err):
		end.Outcome = Interrupted
	case failure.Is(err, machine.KindRefused), failure.Is(err, machine.KindInVain), sharing.IsRefusal(err):
		end.Outcome = Refused
	default:
		end.Outcome = Failed
	}
	return end
}
