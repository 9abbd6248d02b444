package deploy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// Image warns of a restart for content of the machine's own, with an image that another machine had booted before this run. Either the
// image lacks the content, or an earlier run has stopped before it came to this machine: no record tells the two apart.
func (l *Look) Image(ctx context.Context) {
	step, iso := Step{}, l.Wish.LiveISO
	if i := slices.IndexFunc(l.Plan.Steps, func(s Step) bool { return s.Do == DoBoot && !s.Maybe }); i >= 0 {
		step = l.Plan.Steps[i]
	}
	names := slices.DeleteFunc(slices.Clone(step.Boot.Obsolete), func(name string) bool { return !strings.HasPrefix(name, "host.") })
	want := iso.V.Want
	if l.Site == nil || len(names) == 0 || !iso.V.built() || want.Contains != nil || l.Seen.Sight.Boot.Wanted.IsOf(want.Artifacts) {
		return
	}
	for _, n := range bootsOf(l.Site).list(ctx, l.Site) {
		note := BootNoteOf(&n)
		if n.UUID == l.Seen.ID || note == nil || !note.IsOf(want.Artifacts) || !note.At.Before(l.Site.Run.Started()) {
			continue
		}
		l.warn(nil, "Image may lack what the machine is restarted for", fmt.Sprintf("Node %s is restarted for %s. Node %s was booted with "+
			"the same image at %s, so the image may be older than that content. Then the restart is in vain, and no later image repeats "+
			"it. Set live_iso.contains: the machine then waits for an image that has the content.", l.Seen.Label,
			strings.Join(names, ", "), cmp.Or(n.Name, n.UUID), note.At.UTC().Format(time.RFC3339)))
		return
	}
}

// boots are the boots of live ISOs that the nodes of a site told a run.
type boots struct{ nodes routine.Shared[[]ironic.Node] }

func bootsOf(site *machine.Site) *boots {
	return machine.Kept(site, func(*machine.Site) *boots { return &boots{} })
}

// list reads the notes of all nodes, once in a run. Without an answer there are none: the plan says less.
func (b *boots) list(ctx context.Context, site *machine.Site) []ironic.Node {
	nodes, _ := b.nodes.Get(ctx, func(ctx context.Context) ([]ironic.Node, error) {
		return site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{}, []string{"uuid", "name", "extra"})
	})
	return nodes
}
