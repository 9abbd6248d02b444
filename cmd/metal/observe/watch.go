// Package observe has the commands of metal that show what happens at a site.
package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

const aboutWatch = `metal watch shows what happens to the machines in Ironic while an apply runs. It reads one list of nodes every
--poll-interval, and the list of allocations when a machine has a new reservation. It changes nothing, and shows the
operations of all runs and of all other clients.

--resource-class, --owner, --name-regex and --allocation select machines. The allocation must exist when the command
begins. Ironic deletes it when its machine is undeployed: the command goes on to show the machines that it has had
meanwhile, until another allocation has them. What counts as done:

  with --goal      a machine at rest in this state; all others of the selection are still to come
  without --goal   a machine on which an operation has ended since the command began. Machines on which no operation has
                   begun do not count, unless they are reserved or their creation is not finished

If machines of the apply do not count yet, because Ironic does not have them or no operation on them has begun, --total says
how many there will be. The estimate of the end assumes that operations go on ending as often as before; it needs three of
them.

On a terminal the command redraws a page: the bar, the machines with an operation in progress and the time in their state,
and failures with Ironic's reason. A machine is named "rack1-07 (web-3)": the node, and the allocation that has it. If the
output is not a terminal, it writes a line for each change of state. With --html it also keeps a page with a timeline up to
date, which needs no network and no server. With --record it appends each change to a file, from which metal timeline tells
the life of one machine.

With --metrics-listen it serves metrics for Prometheus, and goes on if Ironic does not answer its first list. They count the
slots of the whole site by --max-concurrent, --limit-scope, --stuck-after and --exempt-boot-interfaces, which must be those
of the provider.

The command ends on Ctrl-C, which does not stop any operation, or with --until-idle. If Ironic does not answer, it says so
and tries again.

  metal watch --resource-class baremetal --goal active        the machines that a configuration deploys
  metal watch --name-regex '^rack12-' --html rack12.html      one rack, with a timeline
  metal watch --goal active --until-idle 5m | tee apply.log   in a CI job: ends when nothing has happened for 5 minutes
  metal watch --quiet --metrics-listen 127.0.0.1:9464         as a service`

// goals are the values of --goal.
var goals = []string{"enroll", "manageable", "available", "active", string(watch.GoalDeleted)}

type watchFlags struct {
	selection cli.SelectionFlags
	goal      string
	total     int
	untilIdle time.Duration
	html      string
	record    string
	quiet     bool
	metrics   metricsFlags
}

// Commands returns the commands.
func Commands(s *cli.Settings) []*cobra.Command {
	return []*cobra.Command{
		newDoctor(s), newForecast(s), newHistory(s), newLint(), newList(s), newLock(s), newShow(s), newTimeline(s), newValidate(s),
		newWatch(s),
	}
}

func newWatch(s *cli.Settings) *cobra.Command { return new(watchFlags).command(s) }

func (f *watchFlags) command(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "watch", Short: "Show the progress of the machines in Ironic", Long: aboutWatch, Args: cli.OnlyFlags}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.selection.Declare(cmd)
	flags.StringVar(&f.goal, "goal", "", "`state` in which a machine is done: "+strings.Join(goals, ", "))
	flags.IntVar(&f.total, "total", 0, "`number` of machines that there will be")
	cli.DurationVar(flags, &f.untilIdle, "until-idle", 0, "end when no operation has been in progress for this `time`; "+
		"default: end on Ctrl-C")
	flags.StringVar(&f.html, "html", "", "`file` to keep an HTML page in")
	flags.StringVar(&f.record, "record", "", "`file` to append each change to, for metal timeline")
	flags.BoolVar(&f.quiet, "quiet", false, "write nothing to standard output")
	f.metrics.declare(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd, args, s) }
	return cmd
}

func (f *watchFlags) check() error {
	var wrong []error
	if f.goal != "" && !slices.Contains(goals, f.goal) {
		wrong = append(wrong, fmt.Errorf("--goal is %q; it must be one of %s", f.goal, strings.Join(goals, ", ")))
	}
	return errors.Join(errors.Join(wrong...), cli.NotNegative("total", f.total), cli.NotNegative("until-idle", f.untilIdle),
		f.metrics.check())
}

// spareScreen lets nothing be written beside a screen that is shown: the screen itself says that Ironic does not answer.
func spareScreen(c *api.Config, shown *atomic.Bool) {
	tell := c.Silent
	if tell == nil {
		return
	}
	c.Silent = func(text string) {
		if !shown.Load() {
			tell(text)
		}
	}
}

type lister = func(context.Context) (watch.Sample, error)

// noting is the list, and records that there was one.
func noting(list lister, read *atomic.Bool) lister {
	return func(ctx context.Context) (watch.Sample, error) {
		sample, err := list(ctx)
		if err == nil {
			read.Store(true)
		}
		return sample, err
	}
}

func (f *watchFlags) run(cmd *cobra.Command, args []string, s *cli.Settings) error {
	selected, err := f.selection.Selection(cmd, args)
	if err := errors.Join(err, s.CompleteIronic(cmd.Flags()), f.check()); err != nil {
		return err
	}
	s.LogRequests(cmd)
	title := s.IronicName() + selected.String()
	displays := []watch.Display{f.display(cmd, title, s.Getenv)}
	var shown atomic.Bool
	if _, draws := displays[0].(*watch.Screen); draws {
		spareScreen(&s.Ironic.Config, &shown)
	}
	client := ironic.New(s.Ironic.Config, ironic.Polls{})
	if f.html != "" {
		displays = append(displays, &watch.Page{File: f.html, Title: title, Refresh: s.Ironic.PollInterval})
	}
	model := watch.NewModel(watch.Goal(f.goal), f.total)
	if f.record != "" {
		displays = append(displays, &watch.Recorder{File: f.record, Title: title, Model: model})
	}
	followed := selected.Follow()
	options := watch.Options{
		List:      func(ctx context.Context) (watch.Sample, error) { return watch.List(ctx, client, followed) },
		MayPass:   api.MayPass,
		Interval:  s.Ironic.PollInterval,
		UntilIdle: f.untilIdle,
		Keep:      f.keeps(),
		Displays:  displays,
	}
	site := &watch.Site{Client: client, Limit: f.metrics.limit}
	ctx, stop, err := f.metrics.start(cmd, &options, func(ctx context.Context) (watch.Sample, error) { return site.List(ctx, followed) })
	if err != nil {
		return &cli.Failure{Code: cli.ExitError, Err: err}
	}
	options.List = noting(watch.WithCauses(client, watch.WithFreeze(client, options.List)), &shown)
	end, err := watch.Run(ctx, model, options)
	if broken := stop(); broken != nil {
		return &cli.Failure{Code: cli.ExitError, Err: broken}
	}
	switch {
	case err != nil && !fault.Is(err, watch.KindList):
		return &cli.Failure{Code: cli.ExitError, Err: fmt.Errorf("metal watch has ended: %w", err)}
	case err != nil:
		return &cli.Failure{Code: cli.ExitError, Err: fmt.Errorf("could not watch %s: %s", s.IronicName(), watch.Problem(err))}
	case len(end.Failed) > 0 && f.quiet:
		return &cli.Failure{Code: cli.ExitNodesFailed, Err: fmt.Errorf("%s failed; without --quiet, metal watch names them",
			words.Count(len(end.Failed), "machine"))}
	case len(end.Failed) > 0:
		return &cli.Failure{Code: cli.ExitNodesFailed, Err: fmt.Errorf("%s failed; see above", words.Count(len(end.Failed), "machine"))}
	case cmd.Context().Err() == nil && f.goal != "" && end.Done < end.Total:
		return &cli.Failure{Code: cli.ExitGoalMissed, Err: fmt.Errorf("nothing is in progress any more, and %d of %s did not reach %s",
			end.Total-end.Done, words.Count(end.Total, "machine"), f.goal)}
	}
	return nil
}

// serviceKeeps is how long a watch without a display remembers what machines did: its memory must not grow.
const serviceKeeps = 24 * time.Hour

// keeps returns how long the watch remembers what machines did; zero: always, for the whole of an apply on a page and in the count of a
// goal.
func (f *watchFlags) keeps() time.Duration {
	if f.metrics.listen != "" || f.quiet && f.html == "" && f.goal == "" {
		return serviceKeeps
	}
	return 0
}

// display returns what shows the machines: nothing but problems with --quiet, a page that is redrawn if standard output is a terminal,
// otherwise lines.
func (f *watchFlags) display(cmd *cobra.Command, title string, getenv func(string) string) watch.Display {
	if f.quiet {
		return &watch.Lines{Out: io.Discard, Err: cmd.ErrOrStderr()}
	}
	out := cmd.OutOrStdout()
	if printer, ok := out.(*rest.Printer); ok {
		out = printer.To // the model makes the texts of others printable
	}
	if width, height := cli.TerminalSize(out); width == 0 || height == 0 || getenv("TERM") == "dumb" {
		return &watch.Lines{Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}
	}
	return &watch.Screen{
		Out: out, Title: title, Colour: getenv("NO_COLOR") == "",
		Size: func() (int, int) { return cli.TerminalSize(out) },
	}
}
