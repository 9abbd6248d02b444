package operate

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

const aboutFreeze = `metal freeze holds back all runs of the provider, and all commands of metal, at a site: they begin nothing new on a machine. What
is in progress ends. Plans, and commands that only show something, work as always.

With --until, what would begin waits for that time, if it is not later than the time-out of the operation. Otherwise it fails, and
says who has frozen the site, and why. metal thaw ends a freeze.

Other clients of Ironic know nothing of a freeze. It takes the right to make a chassis in Ironic, by default of an administrator. A
user without it freezes only the runs of its project.

  metal freeze --reason "switch 3 is being replaced"
  metal freeze --reason "quiet night" --until 06:00`

func newFreeze(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "freeze", Short: "Let no run begin anything at a site", Long: aboutFreeze, Args: cli.OnlyFlags}
	reason, until, yes := "", "", false
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&reason, "reason", "", "`text` that says why; all runs show it")
	flags.StringVar(&until, "until", "", "`time` at which it ends, such as 06:00, 8h or 2026-11-28T06:00:00Z; default: by metal thaw")
	flags.BoolVar(&yes, "yes", false, "replace another freeze without a question")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		end, err := endOf(until, time.Now())
		if reason == "" {
			err = errors.Join(errors.New("--reason is missing: it says why the site is frozen"), err)
		}
		if err != nil {
			return err
		}
		freeze := throttle.Freeze{Reason: reason, By: operate.Operator(s.Getenv), Until: end.UTC()}
		return onFreezes(cmd, s, func(freezes *throttle.Freezes, now time.Time) error {
			freeze.Since = now.UTC().Truncate(time.Second)
			stands, err := freezes.Set(cmd.Context(), freeze, yes)
			if err == nil && stands != nil {
				if !cli.NewAsker(cmd).Yes("The site is already %s. Replace that?", stands) {
					err := fmt.Errorf("the site is already %s. To replace that, use --yes", stands)
					return &cli.Failure{Code: cli.ExitUnconfirmed, Err: err}
				}
				_, err = freezes.Set(cmd.Context(), freeze, true)
			}
			if err != nil {
				return err
			}
			cli.Line(cmd.OutOrStdout(), "The site is %s. What is in progress ends. Waiting %s until all runs know", &freeze,
				throttle.FreezeNoticed)
			_ = rest.Sleep(cmd.Context(), throttle.FreezeNoticed) // the site stays frozen
			return nil
		})
	}
	return cmd
}

// endOf reads the end of a freeze: a time of day, which is the next such one, a duration from now on, or a time with its date; zero: none.
func endOf(text string, now time.Time) (end time.Time, err error) {
	if text == "" {
		return end, nil
	}
	after, err := time.ParseDuration(text)
	if end = now.Add(after); err != nil {
		end, err = time.Parse(time.RFC3339, text)
	}
	if clock, cerr := time.Parse("15:04", text); cerr == nil {
		end, err = time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, now.Location()), nil
		if !end.After(now) {
			end = end.AddDate(0, 0, 1)
		}
	}
	switch {
	case err != nil:
		return end, fmt.Errorf("--until is %q; it must be a time such as 06:00, 8h or 2026-11-28T06:00:00Z", text)
	case !end.After(now):
		return end, fmt.Errorf("--until is %q, which is over; it must be a time to come", text)
	}
	return end.Truncate(time.Second), nil
}

const aboutThaw = `metal thaw ends the freeze of a site, also one of another operator. Runs that wait for its end go on within 20 seconds.`

func newThaw(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "thaw", Short: "End the freeze of a site", Long: aboutThaw, Args: cli.OnlyFlags}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return onFreezes(cmd, s, func(freezes *throttle.Freezes, _ time.Time) error {
			ended, err := freezes.End(cmd.Context())
			switch {
			case err != nil:
				return err
			case ended == nil:
				cli.Line(cmd.OutOrStdout(), "The site is not frozen")
			default:
				cli.Line(cmd.OutOrStdout(), "The site is not frozen any more. It was %s", ended)
			}
			return nil
		})
	}
	return cmd
}

// onFreezes does something about the freeze of the site. now is the time by Ironic's clock.
func onFreezes(cmd *cobra.Command, s *cli.Settings, do func(freezes *throttle.Freezes, now time.Time) error) error {
	site, _, done, err := s.OpenSite(cmd)
	if err != nil {
		return err
	}
	defer done()
	if _, err = site.Ironic.Microversion(cmd.Context()); err == nil { // then Ironic's time is known
		err = do(site.Freezes(), site.Ironic.ServerNow())
	}
	if end, is := errors.AsType[*cli.Failure](err); is || err == nil {
		if is {
			return end
		}
		return nil
	}
	_, detail := failure.Explain("", err)
	if api.IsForbidden(err) {
		site, _ := failure.GrantOf("chassis:create")
		detail += " To freeze or thaw the site takes the role " + site.Of("chassis") + "; a project, member in it."
	}
	return &cli.Failure{Code: cli.ExitError, Err: errors.New(detail)}
}
