package observe

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast/planned"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast/survey"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

const aboutForecast = `metal forecast says how long the apply of a saved plan takes, and when each machine is away. It reads the plan, the
provisioning limit and the rollouts in it, and what Ironic says of the site now, and runs the provider's own scheduler in
virtual time. It changes nothing.

  terraform plan -out=saved && terraform show -json saved > plan.json

Ironic does not say how long operations took. The command knows only cleanings that the provider has watched, from its
notes on the nodes. Give all other times: --deploy 12m, or for a resource class --deploy gpu=25m; the flags may be
repeated. If a time is missing, or something that decides is not known before the apply, the command names it and ends
with exit code 1.

--compare makes the same forecast with other settings, and --what-if shows which machines a failure touches.

  metal forecast plan.json --deploy 12m --clean 20m --undeploy 1m
  metal forecast plan.json --deploy 12m --compare max-concurrent=40 --compare max-concurrent=40,parallelism=50
  metal forecast plan.json --deploy 12m --what-if image-fails`

type forecastFlags struct {
	parallelism, canary int
	limit               throttle.Limit // only what the flags give
	times               map[forecast.Operation]*[]string
	compare, whatIf     []string
	output              string
}

// timed are the operations that have a flag.
var timed = []struct {
	forecast.Operation
	about string
}{
	{forecast.Deploy, "how long a deployment or a rebuild takes, until the machine is ready"},
	{forecast.Clean, "how long a cleaning takes"},
	{forecast.Undeploy, "how long it takes to undeploy a machine, without the cleaning"},
	{forecast.Inspect, "how long an inspection takes"},
	{forecast.Service, "how long a service takes, which changes BIOS settings and firmware of a deployed machine"},
	{forecast.Restart, "how long a restart, or switching on a deployment with a ready check, takes until the machine is ready"},
	{forecast.PowerOn, "how long it takes to switch a machine on; default: 10s"},
	{forecast.Verify, "how long it takes to verify the BMC of a new host; default: 10s"},
}

func newForecast(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use: "forecast PLAN.json", Short: "Say how long the apply of a saved plan takes",
		Long: aboutForecast, Args: onePlan,
	}
	own := forecastFlags{times: make(map[forecast.Operation]*[]string, len(timed))}
	flags := cmd.Flags()
	flags.SortFlags = false
	for _, one := range timed {
		own.times[one.Operation] = flags.StringArray(string(one.Operation), nil, one.about+": `time` or CLASS=TIME")
	}
	flags.IntVar(&own.parallelism, "parallelism", 10, "`number` that terraform apply gets")
	flags.IntVar(&own.canary, "canary", 0, "`number` of canaries of all rollouts; default: that of the plan")
	flags.StringArrayVar(&own.compare, "compare", nil, "`settings` to compare, such as max-concurrent=40,parallelism=50 or canary=2")
	flags.StringArrayVar(&own.whatIf, "what-if", nil, "what `fails`: image-fails, or bmc-dead=NODE")
	flags.StringVar(&own.output, "output", "table", "`format` on standard output: table or json")
	cli.Section(flags, "Flags of the provisioning limit; default: that of the plan, then of "+throttle.MaxVariable, func() {
		cli.PlannedLimitFlags(flags, &own.limit)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return own.run(cmd, args[0], s) }
	return cmd
}

func onePlan(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New(`name one plan, as "terraform show -json" prints it; - reads standard input`)
	}
	return nil
}

func (f *forecastFlags) run(cmd *cobra.Command, file string, s *cli.Settings) error {
	times, err := f.readTimes()
	what, whatErr := f.readWhatIf()
	compare, compareErr := f.readCompare()
	if err := errors.Join(
		err, whatErr, compareErr, cli.CheckOutput(f.output), cli.Positive("parallelism", f.parallelism),
		cli.CheckLimit(f.limitOver(cmd.Flags(), throttle.Limit{Scope: throttle.ScopeAll})), cli.NotNegative("canary", f.canary),
		s.CompleteIronic(cmd.Flags()),
	); err != nil {
		return err
	}
	s.LogRequests(cmd)
	in, notes, err := f.input(cmd, file, s, times)
	if err != nil {
		return &cli.Failure{Code: cli.ExitError, Err: err}
	}
	in.WhatIf = what
	result, err := forecast.Make(in)
	if err != nil {
		return &cli.Failure{Code: cli.ExitError, Err: err}
	}
	result.Notes = append(result.Notes, notes...)
	others, err := alternatives(in, compare)
	switch {
	case err != nil:
		return err
	case f.output == "json":
		return result.WriteJSON(cmd.OutOrStdout(), others)
	}
	result.Write(cmd.OutOrStdout(), others)
	return nil
}

// input reads the plan and the site, and returns what they lack or assume, too. given are the times of the flags.
func (f *forecastFlags) input(
	cmd *cobra.Command, file string, s *cli.Settings, given forecast.Times,
) (in forecast.Input, notes []string, err error) {
	work, err := readPlan(cmd, file)
	if err != nil {
		return in, nil, err
	}
	settings, assumed, err := f.settings(cmd.Flags(), work.Provider, s.Getenv)
	if err != nil {
		return in, nil, err
	}
	found, err := survey.Read(cmd.Context(), machine.New(s.Ironic))
	if err != nil {
		return in, nil, fmt.Errorf("read %s: %w", s.IronicName(), err)
	}
	if err := found.Complete(work.Steps); err != nil {
		return in, nil, err
	}
	poll := s.Ironic.PollInterval
	if work.Provider.Poll > 0 {
		poll = work.Provider.Poll
	}
	return forecast.Input{Steps: work.Steps, Site: found.Site, Settings: settings, Times: given.Or(found.Times), Poll: poll},
		slices.Concat(work.Notes, assumed, found.Notes, found.Learned(given)), nil
}

// readPlan reads a plan from a file or standard input.
func readPlan(cmd *cobra.Command, file string) (*planned.Work, error) {
	text, err := cli.ReadFile(cmd, file)
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	return planned.Read(text)
}

func (f *forecastFlags) readTimes() (forecast.Times, error) {
	times := make(forecast.Times, len(timed))
	times[forecast.Verify], times[forecast.PowerOn] = forecast.ByClass{"": 10 * time.Second}, forecast.ByClass{"": 10 * time.Second}
	var wrong []error
	for _, one := range timed {
		for _, text := range *f.times[one.Operation] {
			class, value, has := strings.Cut(text, "=")
			if !has {
				class, value = "", text
			}
			d, err := time.ParseDuration(value)
			if err != nil || d < 0 || has && class == "" {
				wrong = append(wrong, fmt.Errorf("--%s is %q; it must be a time such as 12m, or a class and a time such as gpu=25m",
					one.Operation, text))
				continue
			}
			if times[one.Operation] == nil {
				times[one.Operation] = forecast.ByClass{}
			}
			times[one.Operation][class] = d
		}
	}
	return times, errors.Join(wrong...)
}

// readWhatIf reads what goes wrong.
func (f *forecastFlags) readWhatIf() (what forecast.WhatIf, err error) {
	for _, text := range f.whatIf {
		node, dead := strings.CutPrefix(text, "bmc-dead=")
		switch {
		case text == "image-fails":
			what.ImageFails = true
		case dead && node != "":
			what.Dead = append(what.Dead, node)
		default:
			err = errors.Join(err, fmt.Errorf("--what-if is %q; it must be image-fails, or bmc-dead= and the name of a node", text))
		}
	}
	return what, err
}

// limitFlags are the flags of the provisioning limit, with what each changes in it.
var limitFlags = []struct {
	flag, attribute string
	set             func(limit *throttle.Limit, given throttle.Limit)
}{
	{"max-concurrent", "max_concurrent", func(l *throttle.Limit, given throttle.Limit) { l.Max = given.Max }},
	{"limit-scope", "scope", func(l *throttle.Limit, given throttle.Limit) { l.Scope = given.Scope }},
	{"stuck-after", "stuck_after", func(l *throttle.Limit, given throttle.Limit) { l.StuckAfter = given.StuckAfter }},
	{"exempt-boot-interfaces", "exempt_boot_interfaces", func(l *throttle.Limit, given throttle.Limit) { l.Exempt = given.Exempt }},
}

// limitOver returns a limit with what the flags give.
func (f *forecastFlags) limitOver(flags *pflag.FlagSet, limit throttle.Limit) throttle.Limit {
	for _, one := range limitFlags {
		if flags.Changed(one.flag) {
			one.set(&limit, f.limit)
		}
	}
	return limit
}

// settings returns the settings of the run: flags, then the plan, then the environment. notes says what it has to assume.
func (f *forecastFlags) settings(
	flags *pflag.FlagSet, p planned.Provider, getenv func(string) string,
) (settings forecast.Settings, notes []string, err error) {
	settings = forecast.Settings{Limit: f.limitOver(flags, p.Limit), Parallelism: f.parallelism}
	switch text := getenv(throttle.MaxVariable); {
	case flags.Changed("max-concurrent"):
	case p.Unknown != "":
		return settings, nil, fmt.Errorf("provisioning_limit is not known: %s. Give --max-concurrent, and the other flags of the limit "+
			"if it sets more", p.Unknown)
	case !p.IsMax && text != "":
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return settings, nil, fmt.Errorf("the environment variable %s is %q. It must be a whole number, 0 for no limit",
				throttle.MaxVariable, text)
		}
		settings.Limit.Max = n
	}
	if p.Unknown != "" {
		notes = assumed(flags, p.Unknown)
	}
	if flags.Changed("canary") {
		settings.Canary = &f.canary
	}
	return settings, notes, nil
}

// assumed says for which attributes of a provisioning_limit that is not known, and why it is not, the defaults are taken.
func assumed(flags *pflag.FlagSet, why string) []string {
	var attributes, missing []string
	for _, one := range limitFlags {
		if !flags.Changed(one.flag) {
			attributes, missing = append(attributes, one.attribute), append(missing, "--"+one.flag)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("provisioning_limit is not known: %s. The forecast takes the defaults of %s; if they are others, give %s",
		why, strings.Join(attributes, ", "), strings.Join(missing, ", "))}
}

// comparison is a change of the settings.
type comparison struct {
	label  string
	change func(*forecast.Settings)
}

func (f *forecastFlags) readCompare() (all []comparison, wrong error) {
	for _, text := range f.compare {
		var changes []func(*forecast.Settings)
		for one := range strings.SplitSeq(text, ",") {
			name, value, _ := strings.Cut(one, "=")
			n, err := strconv.Atoi(value)
			switch {
			case err != nil || n < 0 || n == 0 && name == "parallelism":
				wrong = errors.Join(wrong, fmt.Errorf("--compare has %q; it must be a name and a number, such as max-concurrent=40", one))
			case name == "max-concurrent":
				changes = append(changes, func(s *forecast.Settings) { s.Limit.Max = n })
			case name == "parallelism":
				changes = append(changes, func(s *forecast.Settings) { s.Parallelism = n })
			case name == "canary":
				changes = append(changes, func(s *forecast.Settings) { s.Canary = &n })
			default:
				wrong = errors.Join(wrong, fmt.Errorf("--compare has %q; it compares max-concurrent, parallelism and canary", name))
			}
		}
		all = append(all, comparison{text, func(s *forecast.Settings) {
			for _, change := range changes {
				change(s)
			}
		}})
	}
	return all, wrong
}

func alternatives(in forecast.Input, compare []comparison) (all []forecast.Alternative, err error) {
	for _, c := range compare {
		other := in
		c.change(&other.Settings)
		result, err := forecast.Make(other)
		if err != nil {
			return nil, &cli.Failure{Code: cli.ExitError, Err: fmt.Errorf("with %s: %w", c.label, err)}
		}
		all = append(all, forecast.Alternative{Label: c.label, Result: result})
	}
	return all, nil
}
