package observe

import (
	"cmp"
	"errors"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/doctor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

const aboutDoctor = `metal doctor finds out what is wrong at a site: whether Ironic and Keystone answer, which version and which rights there
are, whether conductors and drivers work, which machines have failed or do not get on, and what earlier runs have left, also
on the appliance that ONEVIEW_ENDPOINT names. Each check is ok, a warning, a problem or unknown; > says what to do. A check
that fails leaves the others running.

It asks only the servers that you name. Those of the images on nodes are chosen by whoever may deploy there: the report names
them. --image-url asks one; its credentials and query are not sent, and redirects are not followed.

It changes nothing, except with --remove-stale. To find out what you may do, it sends requests that Ironic refuses in any
case, but only after it has looked at its policy. Ironic's log therefore has some errors with the word terraform-metal-doctor.

The flags of the provisioning limit must be those of the provider: they say which machines take a slot, and how long an
operation may take.

The output has names of users, hosts, machines and projects, and no passwords or tokens. Attach --output json to a bug report.

  metal doctor                                                all checks
  metal doctor --image-url https://images.example.com/a.raw   and the server of an image
  metal doctor --output json > doctor.json                    for a bug report`

type doctorFlags struct {
	output      string
	image       string
	timeout     time.Duration
	limit       throttle.Limit
	removeStale bool
}

func newDoctor(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "doctor", Short: "Find out what is wrong at a site", Long: aboutDoctor, Args: cli.OnlyFlags}
	var own doctorFlags
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&own.output, "output", "table", "`format`: table or json")
	flags.StringVar(&own.image, "image-url", "", "`URL` of an image, or of a server of images, to ask; default: none is asked")
	cli.DurationVar(flags, &own.timeout, "timeout", time.Minute, "`time` for all checks")
	cli.Section(flags, "Flags of the provisioning limit, whose slots are counted", func() { cli.LimitFlags(flags, &own.limit) })
	flags.BoolVar(&own.removeStale, "remove-stale", false, "delete the lock records of dead runs")
	flags.AddFlagSet(s.OneViewFlags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return own.run(cmd, s) }
	return cmd
}

func (f *doctorFlags) check() error {
	var wrong error
	if u, err := url.Parse(f.image); f.image != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		wrong = errors.New("--image-url must be a URL that begins with http:// or https://")
	}
	return errors.Join(cli.CheckOutput(f.output), wrong, cli.Positive("timeout", f.timeout), cli.CheckLimit(f.limit))
}

func (f *doctorFlags) run(cmd *cobra.Command, s *cli.Settings) error {
	if err := errors.Join(cli.ReadEnvironment(cmd.Flags(), s.Getenv), f.check()); err != nil {
		return err
	}
	_, pool, done, err := s.OpenSite(cmd)
	if err != nil {
		return err
	}
	defer done()
	options := doctor.Options{
		Site: s.Ironic, Version: s.Version, Budget: f.timeout, Limit: f.limit, Image: f.image,
		RemoveStale: f.removeStale,
	}
	options.StuckAfter = cmp.Or(f.limit.StuckAfter, throttle.DefaultStuckAfter)
	if pool != nil {
		options.OneView = pool.OneView
	}
	report := doctor.Run(cmd.Context(), options)
	if err := f.write(cmd, report); err != nil {
		return &cli.Failure{Code: cli.ExitError, Err: err}
	}
	switch {
	case cmd.Context().Err() != nil:
		return &cli.Failure{Code: cli.ExitError, Err: errors.New("the command was stopped before all checks were made")}
	case report.Has(doctor.Problem):
		return &cli.Failure{Code: cli.ExitNodesFailed}
	}
	return nil
}

func (f *doctorFlags) write(cmd *cobra.Command, report *doctor.Report) error {
	if f.output == "table" {
		return report.Write(cmd.OutOrStdout(), cli.Width(cmd.OutOrStdout()))
	}
	return rest.WriteJSON(cmd.OutOrStdout(), report)
}
