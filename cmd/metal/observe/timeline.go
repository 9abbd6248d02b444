package observe

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/timeline"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

const aboutTimeline = `metal timeline tells what happened to one machine, the oldest first, with who did it and how long it took. It changes nothing.
It joins four sources:

  node, allocation   what Ironic knows now, with the times that it keeps: creation, last inspection, present state
  history            the history of the node in Ironic. Ironic 21.4 records failures only; newer ones also record the steps
                     of cleanings and deployments
  note               what the provider notes on the node: who created it, rollouts, cleanings, quarantine
  watch              the files that metal watch --record has written; only they know all states of the past

For an allocation, the life follows the allocation: the node that it has, and the nodes that it had according to the records.
The command also says what it does not know: times between two known ones, and sources that could not be read. All times are
in UTC, as those of metal show, metal history and the messages of the provider.

  metal timeline rack1-07                                  what Ironic and the provider know
  metal timeline rack1-07 --record apply.jsonl             and what a watch has seen
  metal timeline web-0 --record monday.jsonl --record tuesday.jsonl --html web-0.html`

type timelineFlags struct {
	records []string
	html    string
	output  string
}

func newTimeline(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "timeline NODE|ALLOCATION", Short: "Tell the life of a machine", Long: aboutTimeline, Args: oneMachine}
	var own timelineFlags
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&own.records, "record", nil, "`file` that metal watch --record has written; repeat it for several")
	flags.StringVar(&own.html, "html", "", "`file` for an HTML page with the states as a bar")
	flags.StringVar(&own.output, "output", "table", "`format` on standard output: table or json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return own.run(cmd, s, args[0]) }
	return cmd
}

// oneMachine returns an error unless the arguments name one node or allocation.
func oneMachine(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("%s takes the name or the UUID of one node or allocation", cmd.CommandPath())
	}
	return nil
}

func (f *timelineFlags) run(cmd *cobra.Command, s *cli.Settings, ref string) error {
	if err := errors.Join(cli.CheckOutput(f.output), s.CompleteIronic(cmd.Flags())); err != nil {
		return err
	}
	records, notes, err := f.read()
	if err != nil {
		return err
	}
	s.LogRequests(cmd)
	facts, err := timeline.Read(cmd.Context(), ironic.New(s.Ironic.Config, ironic.Polls{}), ref, records)
	switch {
	case fault.Is(err, timeline.KindNotFound):
		return &cli.Failure{Code: cli.ExitNothing, Err: err}
	case err != nil:
		return &cli.Failure{Code: cli.ExitError, Err: fmt.Errorf("could not read the life of %s: %s", ref, watch.Problem(err))}
	}
	facts.Missing = append(facts.Missing, notes...)
	life := timeline.Join(facts)
	write := func() error { return life.Text(cli.Folded(cmd.OutOrStdout())) }
	if f.output == "json" {
		write = func() error { return life.JSON(cmd.OutOrStdout()) }
	}
	if f.html != "" {
		err = life.WritePage(f.html)
	}
	if err := errors.Join(err, write()); err != nil {
		return &cli.Failure{Code: cli.ExitError, Err: err}
	}
	return nil
}

// read reads the records, and says what is wrong with them.
func (f *timelineFlags) read() (records [][]watch.Entry, notes []string, err error) {
	for _, name := range f.records {
		file, err := os.Open(name)
		if err != nil {
			return nil, nil, fmt.Errorf("--record: %w", err)
		}
		entries, torn, err := watch.ReadRecord(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, nil, fmt.Errorf("--record %s: %w", name, err)
		}
		if torn > 0 {
			notes = append(notes, fmt.Sprintf("%s of record %s could not be read. A watch that is killed leaves such a line.",
				words.Count(torn, "line"), name))
		}
		records = append(records, entries)
	}
	return records, notes, nil
}

const aboutHistory = `metal history tells what Ironic has written to the history of machines, and what the provider and metal have noted on them, the
oldest first. Ironic keeps a limited number of events for each machine. Ironic 21.4 records failures only; newer ones also
record the steps of cleanings and deployments. For one machine, metal timeline tells more.

  metal history rack1-07
  metal history --resource-class gpu --provision-state 'deploy failed' --output json`

func newHistory(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "history [NODE...]", Short: "Show the history of machines, and notes on them", Long: aboutHistory}
	return newReport(s, cmd, func(client *ironic.Client, nodes []ironic.Node, output string) error {
		facts, err := timeline.ReadHistory(cmd.Context(), client, nodes)
		if err != nil {
			return s.Unread("the history", err)
		}
		life := timeline.History(facts)
		if output == "json" {
			return life.JSON(cmd.OutOrStdout())
		}
		return life.Text(cli.Folded(cmd.OutOrStdout()))
	})
}
