package forecast

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// Alternative is a forecast with other settings.
type Alternative struct {
	Label  string // such as max-concurrent=40
	Result *Result
}

// Write writes a forecast and its alternatives for people.
func (r *Result) Write(to io.Writer, alternatives []Alternative) {
	fmt.Fprintf(to, "The apply takes about %s", clockTime(r.Total))
	if fastest, slowest := clockTime(r.Fastest), clockTime(r.Slowest); fastest != slowest {
		fmt.Fprintf(to, " (%s to %s)", fastest, slowest)
	}
	fmt.Fprintf(to, " with -parallelism=%d and max_concurrent = %d.\n\n", r.Places, r.Slots)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MACHINE\tDOES\tFROM\tTO\tWAITS FOR TURN\tFOR SLOT\tOUTCOME\tRESOURCE")
	for i := range r.Lines {
		r.Lines[i].write(table)
	}
	_ = table.Flush() // to a buffer, or the error is that of the command's output
	r.writeSlots(to)
	for _, g := range r.Groups {
		may := "any number"
		if g.May > 0 {
			may = fmt.Sprint(g.May)
		}
		fmt.Fprintf(to, "Rollout %q: %d members, at most %d away at once of %s.\n", g.Name, g.Members, g.Most, may)
	}
	if failed := r.Count(Failed); failed > 0 || r.Count(NotStarted) > 0 {
		fmt.Fprintf(to, "%d succeed, %d are tried and fail, %d are not started and stay as they are, %d are skipped.\n", r.Count(Done),
			failed, r.Count(NotStarted), r.Count(Skipped))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(to, "Note: %s.\n", strings.TrimSuffix(note, "."))
	}
	r.writeAlternatives(to, alternatives)
}

func (l *Line) write(table io.Writer) {
	from, until, outcome := clockTime(l.From), clockTime(l.To), string(l.Outcome)
	if l.untouched() == 1 {
		from, until = "-", "-"
	}
	if l.Why != "" {
		outcome += ": " + l.Why
	}
	does := l.Does
	if l.MayBe {
		does += " (may be)"
	}
	fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Name, does, from, until, clockTime(l.Turn), clockTime(l.Slot),
		outcome, l.Address)
}

func (r *Result) writeSlots(to io.Writer) {
	if r.Slots == 0 {
		fmt.Fprintln(to, "\nThere is no limit: max_concurrent = 0.")
		return
	}
	fmt.Fprintf(to, "\nSlots: at most %d of %d in use.", r.Most, r.Slots)
	if r.Stuck > 0 {
		fmt.Fprintf(to, " Up to %d more machines are stuck: in one state for longer than stuck_after, so that they take none.", r.Stuck)
	}
	var reasons []string
	for _, one := range []struct {
		n   float64
		why string
	}{
		{r.Unused.Parallelism, "-parallelism"},
		{r.Unused.Rollout, "the rollout"},
		{r.Unused.Dependencies, "dependencies between resources"},
		{r.Unused.NoMachines, "a lack of machines"},
	} {
		if one.n >= 0.05 {
			reasons = append(reasons, fmt.Sprintf("%.1f because of %s", one.n, one.why))
		}
	}
	if len(reasons) > 0 {
		fmt.Fprintf(to, " Unused on average: %s.", strings.Join(reasons, ", "))
	}
	fmt.Fprintln(to)
}

func (r *Result) writeAlternatives(to io.Writer, alternatives []Alternative) {
	if len(alternatives) == 0 {
		return
	}
	fmt.Fprintln(to)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WITH\tTAKES\tMOST SLOTS\tFAIL\tNOT STARTED")
	for _, a := range append([]Alternative{{Label: "this plan", Result: r}}, alternatives...) {
		fmt.Fprintf(table, "%s\t%s\t%d of %d\t%d\t%d\n", a.Label, clockTime(a.Result.Total), a.Result.Most, a.Result.Slots,
			a.Result.Count(Failed), a.Result.Count(NotStarted))
	}
	_ = table.Flush() // as above
}

// clockTime shows a time in seconds without units that are zero.
func clockTime(d time.Duration) string { return words.Short(d.Round(time.Second)) }
