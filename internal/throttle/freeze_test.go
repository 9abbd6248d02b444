package throttle_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// One freeze stands: another one replaces it only if its user wants that, or if it is over.
func TestFreezes_oneStands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(0)
		set := func(reason string, lasts time.Duration, again bool) *throttle.Freeze {
			f := throttle.Freeze{Reason: reason, Since: y.Now()}
			if lasts > 0 {
				f.Until = y.Now().Add(lasts)
			}
			stands, err := throttle.NewFreezes(y).Set(t.Context(), f, again)
			if err != nil {
				t.Fatal(err)
			}
			return stands
		}
		if stands := set("first", time.Hour, false); stands != nil {
			t.Error(stands)
		}
		if stands := set("second", 0, false); stands == nil || stands.Reason != "first" {
			t.Errorf("%v stands, want the first one", stands)
		}
		if stands := set("third", time.Hour, true); stands != nil {
			t.Error(stands)
		}
		<-time.After(2 * time.Hour)
		if now := throttle.NewFreezes(y).Now(t.Context()); now != nil {
			t.Errorf("%v counts, which is over", now)
		}
		if stands := set("fourth", 0, false); stands != nil {
			t.Error(stands)
		}
		if was, err := throttle.NewFreezes(y).End(t.Context()); err != nil || was.Reason != "fourth" || y.left() != 0 {
			t.Errorf("%v ended, %v", was, err)
		}
	})
}

// A freeze that is known stays so while its record cannot be read, and what a stranger has written is printed as far as that does no harm.
func TestFreezes_ofAStranger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(1)
		f := throttle.Freeze{Reason: strings.Repeat("\x1b[2Jhuge ", 10000), By: "\u202eeve", Until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
		if _, err := throttle.NewFreezes(y).Set(t.Context(), f, false); err != nil {
			t.Fatal(err)
		}
		l := y.limiter(slotsOf(1, throttle.CoordinationIronic))
		for range 3 {
			began := time.Now()
			err := l.Admit(t.Context(), y.machine("m00"), 0, y.clean("m00", time.Minute))
			if text := err.Error(); !fault.Is(err, throttle.KindFrozen) || len(text) > 600 || strings.ContainsAny(text, "\x1b\u202e") {
				t.Errorf("Admit = %v", err)
			}
			if _, err := l.Freezes().Await(t.Context(), 10*time.Hour); !fault.Is(err, throttle.KindFrozen) || time.Since(began) > time.Minute {
				t.Errorf("after %s, Await = %v", time.Since(began), err)
			}
			y.set(func() { y.unreadable = errPassing })
			<-time.After(time.Minute)
		}
		if said := strings.Count(strings.Join(y.log, "\n"), "could not read whether the site is frozen"); said != 1 || y.looked > 9 {
			t.Errorf("the log says %d times that the record cannot be read, which was asked for %d times", said, y.looked)
		}
	})
}
