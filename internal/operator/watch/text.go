package watch

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// clock is how times of day are written.
const clock = "15:04:05"

// Took writes a duration with its two largest units, such as 40s, 2m10s, 1h05m or 3d4h.
func Took(d time.Duration) string {
	d = max(0, d).Round(time.Second)
	s := int(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 60*60:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 24*60*60:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd%dh", s/(24*3600), s/3600%24)
}

// about writes an estimate, which is not more precise than a tenth.
func about(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than 1 min"
	case d < 2*time.Hour:
		return fmt.Sprintf("about %d min", int(d.Round(time.Minute)/time.Minute))
	}
	return fmt.Sprintf("about %d h", int(d.Round(time.Hour)/time.Hour))
}

// Problem writes an error in one line, without the URL of a request that got no answer.
func Problem(err error) string {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	return rest.OneLine(err.Error())
}

func labelled(name, allocation string) string {
	if allocation == "" || allocation == name {
		return name
	}
	return name + " (" + allocation + ")"
}

func (v View) summary() string {
	parts := []string{v.done()}
	if !v.idle() {
		parts = append(parts, fmt.Sprintf("%d in progress", len(v.InProgress)))
	}
	resting, lost, missing := v.announced()
	for _, part := range []struct {
		machines int
		are      string
	}{
		{len(v.Waiting) + resting, "to come"},
		{missing, "not in Ironic yet"},
		{lost, "deleted or reserved by others"},
		{len(v.Failed), "failed"},
	} {
		if part.machines > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.machines, part.are))
		}
	}
	for _, group := range v.Stopped {
		parts = append(parts, fmt.Sprintf("rollout group %s waits for a member that has failed", group))
	}
	for _, pause := range v.Pausing {
		parts = append(parts, "rollout group "+pause)
	}
	parts = append(parts, v.Sample.unwell()...)
	if v.Sample.Freeze != nil {
		parts = append(parts, "the site is "+v.Sample.Freeze.String())
	}
	return strings.Join(parts, ", ")
}

// mostUnwell is how many machines that report the same health a summary names.
const mostUnwell = 3

// unwell names the machines whose health is not OK, by their health.
func (s Sample) unwell() (all []string) {
	by := map[string][]string{}
	for _, m := range s.Machines {
		if machine.Unwell(m.Health) {
			by[m.Health] = append(by[m.Health], m.label(""))
		}
	}
	for _, health := range slices.Sorted(maps.Keys(by)) {
		names := slices.SortedFunc(slices.Values(by[health]), words.CompareNames)
		more := ""
		if left := len(names) - mostUnwell; left > 0 {
			names, more = names[:mostUnwell], fmt.Sprintf(" and %d more", left)
		}
		all = append(all, rest.OneLine(fmt.Sprintf("health %s of %s%s", health, strings.Join(names, " and "), more)))
	}
	return all
}

// idle reports whether no machine counts, because no operation has begun.
func (v View) idle() bool { return v.Goal == "" && v.Total == 0 }

func (v View) done() string {
	if v.idle() {
		return "nothing in progress"
	}
	return fmt.Sprintf("%d of %d done", v.Done, v.Total)
}

func (v View) counted() int { return v.Done + len(v.Waiting) + len(v.InProgress) + len(v.Failed) }

// announced says what the machines are that count only because the caller has announced them: machines of the selection that rest now, lost
// ones, and those that Ironic does not have yet.
func (v View) announced() (resting, lost, missing int) {
	left := v.Total - v.counted()
	resting = min(left, v.Resting)
	lost = min(left-resting, v.Lost)
	return resting, lost, left - resting - lost
}

// ending writes the estimate of the end; empty if there is none or nothing is left.
func (v View) ending() string {
	switch {
	case v.Total == 0 || v.Done+len(v.Failed) >= v.Total:
		return ""
	case !v.LeftKnown:
		return ""
	}
	return fmt.Sprintf("%s left (%s)", about(v.Left), v.Now.Add(v.Left).Format("15:04"))
}
