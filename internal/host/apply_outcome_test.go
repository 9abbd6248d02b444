package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// TestAfter_everyEnding lists what Terraform stores of a host and says after each failure and interruption. The host of an update was
// cleaned twice, and the plan counts a third cleaning.
func TestAfter_everyEnding(t *testing.T) {
	t.Parallel()
	type (
		ending  = host.Ending
		outcome = host.Outcome
	)
	never, two, three := decide.Known[int64](0), decide.Known[int64](2), decide.Known[int64](3)
	made := func(e ending) ending {
		e.New, e.Cleanings = true, never
		return e
	}
	changed := func(e ending) ending {
		e.Cleanings, e.CleaningsBefore = three, 2
		return e
	}
	for name, tt := range map[string]struct {
		end  ending
		want outcome
	}{
		"a new host": {made(ending{Patched: true, Complete: true}), outcome{Cleanings: never}},
		"it fails": {
			made(ending{Patched: true, Complete: true, Failed: true, LeavesConsole: true}),
			outcome{Says: host.SaysFailed, Cleanings: never},
		},
		"before Ironic has all of it": {made(ending{Failed: true, GoesOn: true}), outcome{Says: host.SaysFailed, Cleanings: never}},
		"it fails, the apply goes on": {
			made(ending{Complete: true, Failed: true, GoesOn: true}),
			outcome{Says: host.SaysTolerated, Cleanings: never},
		},
		"Ctrl-C": {
			made(ending{Failed: true, Stopped: true, GoesOn: true}),
			outcome{Says: host.SaysFailed, Cleanings: never},
		},
		"its work cannot be watched": {
			made(ending{Complete: true, Failed: true, Unwatched: true, GoesOn: true}),
			outcome{Says: host.SaysFailed, Cleanings: never},
		},
		"another run takes it over": {
			made(ending{Complete: true, Failed: true, Superseded: true, GoesOn: true}),
			outcome{Stores: host.StoresNone, Says: host.SaysUndone, Cleanings: never},
		},
		"another node has the MAC": {
			made(ending{Failed: true, Unmade: true}),
			outcome{Stores: host.StoresNone, Says: host.SaysUndone, Cleanings: never},
		},
		"finished by another run": {made(ending{OthersMade: true, Complete: true}), outcome{Cleanings: never}},
		"finished by another run, fails": {
			made(ending{OthersMade: true, Complete: true, Failed: true}),
			outcome{Stores: host.StoresNone, Says: host.SaysUndone, Cleanings: never},
		},
		"finished by another run, Ctrl-C": {
			made(ending{OthersMade: true, Failed: true, Stopped: true}),
			outcome{Says: host.SaysFailed, Cleanings: never},
		},
		"finished by another run, fails, the apply goes on": {
			made(ending{OthersMade: true, Complete: true, Failed: true, GoesOn: true}),
			outcome{Says: host.SaysTolerated, Cleanings: never},
		},

		"an update":        {changed(ending{Patched: true, Complete: true}), outcome{Cleanings: three}},
		"nothing to patch": {changed(ending{Complete: true}), outcome{Cleanings: three}},
		"its walk fails": {
			changed(ending{Patched: true, Complete: true, Failed: true}),
			outcome{Says: host.SaysFailed, Cleanings: two},
		},
		"it fails, and goes on": {
			changed(ending{Complete: true, Failed: true, GoesOn: true}),
			outcome{Says: host.SaysTolerated, Cleanings: three},
		},
		"Ctrl-C during it": {
			changed(ending{Complete: true, Failed: true, Stopped: true, GoesOn: true}),
			outcome{Says: host.SaysFailed, Cleanings: three},
		},
		"it is not watched": {
			changed(ending{Complete: true, Failed: true, Unwatched: true, GoesOn: true}),
			outcome{Says: host.SaysFailed, Cleanings: two},
		},
		"its ports are refused": {
			changed(ending{Patched: true, Failed: true, GoesOn: true}),
			outcome{Stores: host.StoresBoth, Says: host.SaysUndone, Cleanings: two},
		},
		"Ctrl-C between patch and ports": {
			changed(ending{Patched: true, Failed: true, Stopped: true}),
			outcome{Stores: host.StoresBoth, Says: host.SaysUndone, Cleanings: three},
		},
		"its patch is refused": {
			changed(ending{Failed: true, GoesOn: true}),
			outcome{Stores: host.StoresPrior, Says: host.SaysUndone, Cleanings: two},
		},
		"Ctrl-C before the patch": {
			changed(ending{Failed: true, Stopped: true}),
			outcome{Stores: host.StoresPrior, Says: host.SaysUndone, Cleanings: two},
		},
		"cleanings were not planned": {
			ending{Complete: true, Cleanings: decide.Unknown[int64](), CleaningsBefore: 2},
			outcome{Cleanings: three},
		},
		"likewise, and it fails": {
			ending{Complete: true, Failed: true, Cleanings: decide.Unknown[int64](), CleaningsBefore: 2},
			outcome{Says: host.SaysFailed, Cleanings: two},
		},
		"the boot mode is refused": {
			changed(ending{Complete: true, Failed: true, LeavesBoot: true}),
			outcome{Says: host.SaysFailed, KeepsBoot: true, Cleanings: two},
		},
		"the console is refused": {
			changed(ending{Complete: true, Failed: true, LeavesConsole: true}),
			outcome{Says: host.SaysFailed, KeepsConsole: true, Cleanings: two},
		},
		"the console is refused, and the apply goes on": {
			changed(ending{Complete: true, Failed: true, GoesOn: true, LeavesConsole: true}),
			outcome{Says: host.SaysTolerated, Cleanings: three},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := host.After(tt.end); got != tt.want {
				t.Errorf("After returns\n%+v, want\n%+v", got, tt.want)
			}
		})
	}
}

// on_failure lets an apply go on after a failure only: an interruption, and a creation that another run has taken over, stay what they are.
func TestWork_endingOfAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("the agent does not answer")
	for name, tt := range map[string]struct {
		goesOn   bool
		complete bool
		err      error
		want     host.Said
	}{
		"no failure":                  {true, true, nil, host.SaysNothing},
		"failed":                      {true, true, broken, host.SaysTolerated},
		"before Ironic has it":        {true, false, broken, host.SaysUndone},
		"default":                     {false, true, broken, host.SaysFailed},
		"interrupted":                 {true, true, context.Canceled, host.SaysFailed},
		"not watched":                 {true, true, &failure.Error{Kind: failure.KindUnwatched}, host.SaysFailed},
		"taken over by another run":   {true, true, &failure.Error{Kind: notes.KindSuperseded}, host.SaysFailed},
		"failed, and another failure": {true, true, errors.Join(broken, broken), host.SaysTolerated},
	} {
		w := host.Work{Order: host.Order{Was: &ironic.Node{}, GoesOn: tt.goesOn}, Complete: tt.complete}
		if got := host.After(w.Ending(tt.err)).Says; got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
