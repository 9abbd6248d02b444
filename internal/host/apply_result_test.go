package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

func TestTolerates(t *testing.T) {
	t.Parallel()
	broken := errors.New("the agent does not answer")
	for name, tt := range map[string]struct {
		goesOn   bool
		complete bool
		err      error
		want     bool
	}{
		"no failure":                  {true, true, nil, false},
		"failed":                      {true, true, broken, true},
		"before Ironic has it":        {true, false, broken, false},
		"default":                     {false, true, broken, false},
		"interrupted":                 {true, true, context.Canceled, false},
		"taken over by another run":   {true, true, &failure.Error{Kind: notes.KindSuperseded}, false},
		"failed, and another failure": {true, true, errors.Join(broken, broken), true},
	} {
		w := host.Work{Order: host.Order{GoesOn: tt.goesOn}, Complete: tt.complete}
		if got := w.Tolerates(tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
