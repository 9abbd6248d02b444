package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// lostSettings is a provider block whose lost_records is given on the command line.
const lostSettings = `
variable "lost_records" {
  type    = string
  default = null
}

provider "metal" {
  lost_records = var.lost_records
}
`

// database is a fake Ironic whose database can be lost.
type database struct {
	served atomic.Pointer[fakeironic.Server]
}

// lose replaces the database by an empty one.
func (d *database) lose() { d.served.Store(&fakeironic.Server{StepTime: stepTime}) }

func (d *database) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.served.Load().ServeHTTP(w, r) }

// measureLost prints what it costs that Ironic loses the records of deployed machines: the plan that refuses, beside an ordinary one, and
// the plan and the apply that restore them.
func (b *bench) measureLost(ctx context.Context, print printer) error {
	var site database
	site.lose()
	fake, stop, err := serve(ctx, &site)
	if err != nil {
		return err
	}
	defer stop()
	target, err := url.Parse(fake)
	if err != nil {
		return err
	}
	p, endpoint, stopProxy, err := startProxy(ctx, target)
	if err != nil {
		return err
	}
	defer stopProxy()
	w, err := newWorkspace(filepath.Join(b.dir, "lost"), b.cli, endpoint, lostSettings+machines(b.lostMachines))
	if err != nil {
		return err
	}
	var rows []phase
	measure := func(name string, run func() (cost, error)) {
		if err != nil {
			return
		}
		b.say("%s, %d machines", name, b.lostMachines)
		p.take()
		var took cost
		took, err = run()
		rows = append(rows, phase{name, took, p.take()})
	}
	measure("first apply", func() (cost, error) { return w.run(ctx, b.provider, "apply", "-auto-approve", parallelism) })
	measure("plan", func() (cost, error) { return w.emptyPlan(ctx, b.provider, parallelism) })
	site.lose()
	measure("plan that refuses", func() (cost, error) { return w.refusedPlan(ctx, b.provider, parallelism) })
	restoring := "-var=lost_records=restore"
	measure("plan that restores", func() (cost, error) { return w.run(ctx, b.provider, "plan", parallelism, restoring) })
	measure("apply that restores", func() (cost, error) {
		return w.run(ctx, b.provider, "apply", "-auto-approve", parallelism, restoring)
	})
	measure("plan afterwards", func() (cost, error) { return w.emptyPlan(ctx, b.provider, parallelism) })
	if err != nil {
		return err
	}
	print("\n### The records of %d machines are lost and restored\n\n| work | time | requests a machine |\n|---|---:|---:|\n", b.lostMachines)
	for _, row := range rows {
		print("| %s | %.1f s | %s |\n", row.name, row.wall.Seconds(), perMachine(row.all(), b.lostMachines))
	}
	return nil
}

// refusedPlan plans, and fails unless the plan refuses to act for lost records.
func (w *workspace) refusedPlan(ctx context.Context, provider string, args ...string) (cost, error) {
	took, output, err := w.output(ctx, provider, append([]string{"plan"}, args...)...)
	switch {
	case err == nil:
		return cost{}, fmt.Errorf("the plan does not refuse:\n%s", tail(output))
	case !strings.Contains(output, "lost_records"):
		return cost{}, err
	}
	return took, nil
}
