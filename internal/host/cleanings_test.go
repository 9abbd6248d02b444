package host_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
)

// A plan counts the cleaning of a new host, also if a killed run has brought it where it is to be: the apply plans again, maybe later.
func TestDecide_countsTheCleaningOfANewHost(t *testing.T) {
	t.Parallel()
	known, no := decide.Known[string], decide.Known(false)
	for name, tt := range map[string]struct {
		change func(*host.Wish, *host.Seen)
		want   decide.Value[int64]
	}{
		"becomes available":  {func(*host.Wish, *host.Seen) {}, decide.Known[int64](1)},
		"stays manageable":   {func(w *host.Wish, _ *host.Seen) { w.Target = known("manageable") }, decide.Known[int64](0)},
		"is not cleaned":     {func(w *host.Wish, _ *host.Seen) { w.AutomatedClean = no }, decide.Known[int64](0)},
		"may stay":           {func(w *host.Wish, _ *host.Seen) { w.Target = decide.Unknown[string]() }, decide.Unknown[int64]()},
		"is there already":   {func(_ *host.Wish, s *host.Seen) { s.Settled = true }, decide.Known[int64](1)},
		"is out of reach":    {func(w *host.Wish, _ *host.Seen) { w.PowerManaged = no }, decide.Known[int64](0)},
		"its BMC is unknown": {func(w *host.Wish, _ *host.Seen) { w.PowerManaged = decide.Unknown[bool]() }, decide.Known[int64](1)},
	} {
		w := host.Wish{Label: "h", AnyDriver: true, HardwareKnown: true, Target: known("available"), PowerManaged: decide.Known(true)}
		s := host.Seen{New: true}
		tt.change(&w, &s)
		if got := host.Decide(w, s).Forecast.Cleanings; got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
