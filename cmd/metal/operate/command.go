package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// parallel is how many machines a command works on at once by default, as Terraform does.
const parallel = 10

// limitTitle is the title of the flags of the provisioning limit in the help.
const limitTitle = "Flags of the provisioning limit, which all runs and commands on the site share"

// operationFlags are the flags of all commands that change machines.
type operationFlags struct {
	selection   cli.SelectionFlags
	dryRun, yes bool
	yesErase    []string
	parallel    int
	timeout     time.Duration
	output      string
	limit       throttle.Limit
}

// maker returns the operation that the flags of a command ask for.
type maker func(pool *sharing.Pool) (operate.Operation, error)

// newOperation returns a command that does an operation on machines. standard is the default of --timeout.
func newOperation(s *cli.Settings, cmd *cobra.Command, standard time.Duration, make maker) *cobra.Command {
	return new(operationFlags).command(s, cmd, standard, make)
}

func (f *operationFlags) command(s *cli.Settings, cmd *cobra.Command, standard time.Duration, make maker) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.Section(flags, "Flags that select machines, if no NODE is named", func() { f.selection.DeclareForOnce(cmd) })
	cli.Section(flags, "Flags of all operations", func() { f.declare(flags, standard) })
	cli.Section(flags, limitTitle, func() { cli.LimitFlags(flags, &f.limit) })
	flags.AddFlagSet(s.OneViewFlags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd, s, args, make) }
	return cmd
}

// newSimple returns a command without flags of its own.
func newSimple(s *cli.Settings, name, short, about string, make func(*sharing.Pool) operate.Operation) *cobra.Command {
	cmd := &cobra.Command{Use: name + " [NODE...]", Short: short, Long: about}
	return newOperation(s, cmd, make(nil).Timeout, func(pool *sharing.Pool) (operate.Operation, error) { return make(pool), nil })
}

// alone makes an operation that needs no appliance.
func alone(make func() operate.Operation) func(*sharing.Pool) operate.Operation {
	return func(*sharing.Pool) operate.Operation { return make() }
}

// declare declares the flags of all operations. standard is the default of --timeout.
func (f *operationFlags) declare(flags *pflag.FlagSet, standard time.Duration) {
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would happen, and send nothing that changes anything")
	flags.BoolVar(&f.yes, "yes", false, "go on without a question, except where --yes-erase is needed")
	flags.StringSliceVar(&f.yesErase, "yes-erase", nil, "`names` or UUIDs of nodes whose data may be erased, or whose power may be cut "+
		"although they are deployed or reserved, or on which a run may be at work")
	flags.IntVar(&f.parallel, "parallel", parallel, "`number` of machines to work on at once")
	cli.DurationVar(flags, &f.timeout, "timeout", standard, "time-out: `time` for one machine, without the time that it waits for a "+
		"slot of the limit")
	flags.StringVar(&f.output, "output", "table", "`format` on standard output: table, or json, a document at the end")
}

func (f *operationFlags) check() error {
	return errors.Join(cli.CheckOutput(f.output), checkErase(f.yesErase), cli.Positive("parallel", f.parallel),
		cli.Positive("timeout", f.timeout), cli.CheckLimit(f.limit))
}

// checkErase returns the error in --yes-erase: an empty variable of a shell must name nothing.
func checkErase(names []string) error {
	if slices.Contains(names, "") {
		return errors.New("--yes-erase has an empty name")
	}
	return nil
}

// run selects the machines, asks, does the operation, and writes the results.
func (f *operationFlags) run(cmd *cobra.Command, s *cli.Settings, args []string, make maker) error {
	selected, err := f.selection.Selection(cmd, args)
	if err := errors.Join(err, cli.ReadEnvironment(cmd.Flags(), s.Getenv), f.check()); err != nil {
		return err
	}
	s.Ironic.Limit = f.limit
	site, pool, done, err := s.OpenSite(cmd)
	if err != nil {
		return err
	}
	defer done()
	op, err := make(pool)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := op.Offered(ctx, site.Ironic); err != nil {
		return &cli.Failure{Code: cli.ExitError, Err: err}
	}
	machines, err := s.Machines(ctx, site.Ironic, selected, nil)
	if err != nil {
		return err
	}
	tasks := operate.Tasks(op, machines, operate.Look(ctx, site, machines))
	for _, task := range tasks {
		if task.Left != "" {
			cli.Line(cmd.ErrOrStderr(), "%s", task.Left)
		}
	}
	if f.dryRun {
		return f.show(cmd, tasks)
	}
	if err := f.confirm(cmd, tasks); err != nil {
		return err
	}
	to := newProgress(cmd, op.Command, len(machines))
	runner := &operate.Runner{
		Site: site, Parallel: f.parallel, Timeout: f.timeout, By: operate.Operator(s.Getenv), Tell: to.tell, End: to.end,
	}
	results := runner.Run(ctx, op, tasks)
	to.clear()
	for _, notice := range site.Notices() {
		cli.Line(cmd.ErrOrStderr(), "warning: %s. %s", notice.Summary, notice.Detail)
	}
	return errors.Join(write(cmd.OutOrStdout(), f.output, results), failureOf(ctx, "machine", outcomesOf(results)))
}

// show writes what an operation would do.
func (f *operationFlags) show(cmd *cobra.Command, tasks []operate.Task) error {
	var results []operate.Result
	for _, task := range tasks {
		result := operate.Result{Node: task.Node, Plan: task.Told, Outcome: operate.Planned}
		switch {
		case result.Plan.Refused != "":
			result.Outcome, result.Err = operate.Refused, machine.RefusedFor(result.Node, result.Plan.Refused)
		case result.Plan.Nothing:
			result.Outcome = operate.Unchanged
		}
		results = append(results, result)
	}
	return errors.Join(write(cmd.OutOrStdout(), f.output, results), failureOf(cmd.Context(), "machine", outcomesOf(results)))
}

func outcomesOf(results []operate.Result) []operate.Outcome {
	outcomes := make([]operate.Outcome, len(results))
	for i := range results {
		outcomes[i] = results[i].Outcome
	}
	return outcomes
}

// failureOf returns the failure of a command by what it has done, or would do. noun says with what, such as "machine".
func failureOf(ctx context.Context, noun string, outcomes []operate.Outcome) error {
	failed, refused, open, planned := 0, 0, 0, 0
	for _, one := range outcomes {
		switch one {
		case operate.Failed:
			failed++
		case operate.Refused:
			refused++
		case operate.Interrupted, operate.NotBegun:
			open++
		case operate.Planned:
			planned++
		case operate.Done, operate.Unchanged:
		}
	}
	switch {
	case planned > 0:
		return &cli.Failure{Code: cli.ExitWouldChange}
	case ctx.Err() != nil && open > 0:
		return &cli.Failure{Code: cli.ExitError, Err: fmt.Errorf("stopped before the end: %s not finished; see above",
			words.Count(open, noun))}
	case failed+open > 0:
		return &cli.Failure{Code: cli.ExitNodesFailed, Err: fmt.Errorf("%s failed; see above", words.Count(failed+refused+open, noun))}
	case refused > 0:
		return &cli.Failure{Code: cli.ExitNodesFailed, Err: fmt.Errorf("%s refused; see above", words.Count(refused, noun))}
	}
	return nil
}

func (f *operationFlags) confirm(cmd *cobra.Command, tasks []operate.Task) error {
	var questions []question
	for _, task := range tasks {
		if task.Told.Refused == "" && !task.Told.Nothing {
			questions = append(questions, question{ironic.NodeLabel(task.Node), task.Told, task.Node})
		}
	}
	return confirmation{f.yes, f.yesErase}.ask(cmd, "machine", questions)
}
