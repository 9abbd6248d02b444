// Package doctor finds out what is wrong between a user and a site: whether Ironic answers, what the user may do, and what earlier runs
// have left. One part asks the site and writes down the answers; each check is a pure function of these. A failed request is the result of
// its check, and the others go on.
package doctor

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Result is the result of a check.
type Result string

// The results.
const (
	OK      Result = "ok"
	Warning Result = "warning"
	Problem Result = "problem"
	Unknown Result = "unknown" // the check could not be made
)

// Check is what one check has found.
type Check struct {
	Name    string   `json:"name"`
	Result  Result   `json:"result"`
	Fact    string   `json:"fact"`
	Details []string `json:"details,omitempty"`
	Next    string   `json:"next,omitempty"` // what to do; empty: nothing

	telling bool // Details are worth reading also where all is well
}

// Report has the checks in the order in which a user needs them.
type Report struct {
	Version string    `json:"metal"`
	Time    time.Time `json:"time"`
	Checks  []Check   `json:"checks"`
}

// Has reports whether a check has a result.
func (r *Report) Has(result Result) bool {
	return slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Result == result })
}

// Options say what to check.
type Options struct {
	Site        machine.Config
	Version     string         // of the program
	Budget      time.Duration  // for all checks
	StuckAfter  time.Duration  // how long a machine may have an operation in progress
	Limit       throttle.Limit // whose slots are counted
	Image       string         // URL of an image whose server is asked; empty: none is
	RemoveStale bool           // delete the lock records of dead runs
	Images      http.RoundTripper
	OneView     *oneview.Client // of the appliance whose temporary profiles are checked; nil: none
}

// requestShare is which part of the budget one request may take: with the repetition of a request that has timed out, a server that does
// not answer leaves time for the other checks.
const requestShare = 6

// Run makes all checks within the budget. It changes nothing, except that it deletes the lock records of dead runs if it is told to: it
// watches those for their lease before.
func Run(ctx context.Context, o Options) *Report {
	report := &Report{Version: o.Version, Time: time.Now().UTC().Truncate(time.Second)}
	if o.Site.Secrets == nil {
		o.Site.Secrets = &rest.Secrets{}
	}
	o.Site.Secrets.HideURL(o.Image)
	o.Site.RequestTimeout = min(o.Site.RequestTimeout, o.Budget/requestShare)
	within, stop := context.WithTimeout(ctx, o.Budget)
	defer stop()
	seen := look(within, ctx, o)
	for _, check := range []func(*sight) []Check{
		checkIronic, checkVersion, checkUser, checkRights, checkConductors, checkClocks, checkDrivers, checkImages, checkDefect,
		checkLimit, checkFreeze, checkLocks, checkMachines, checkHealth, checkMaintenance, checkMarks, checkAllocations, checkTemporaries,
	} {
		report.Checks = append(report.Checks, check(seen)...)
	}
	for i := range report.Checks {
		clean(&report.Checks[i], o.Site.Secrets)
	}
	return report
}

// clean removes secrets from a check, and whatever does not belong on a terminal.
func clean(c *Check, secrets *rest.Secrets) {
	for _, text := range []*string{&c.Fact, &c.Next} {
		*text = rest.OneLine(secrets.Redact(*text))
	}
	for i := range c.Details {
		c.Details[i] = rest.OneLine(secrets.Redact(c.Details[i]))
	}
}
