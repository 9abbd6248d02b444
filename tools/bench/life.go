package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// stepTime is how long a step takes on the fake: about what the driver fake-hardware of a real Ironic takes.
const stepTime = 100 * time.Millisecond

// parallelism is the number for which the budget of requests holds. It is the CLI's default.
const parallelism = "-parallelism=10"

// realEndpoint is the variable that names a real Ironic with the driver fake-hardware.
const realEndpoint = "METAL_BENCH_ENDPOINT"

// cleanUpTime is how long a destroy may take after a measurement that has failed.
const cleanUpTime = 10 * time.Minute

// phase is what one run of the CLI did.
type phase struct {
	name string // apply, plan or destroy
	cost
	counts
}

// life is what the apply, plan and destroy of some machines did on one Ironic.
type life struct {
	ironic   string
	machines int
	phases   []phase
}

// lives measures a life on the fake and, if the environment names one, on a real Ironic. On error it returns what it has measured.
func (b *bench) lives(ctx context.Context) ([]life, error) {
	fake, stop, err := serve(ctx, &fakeironic.Server{StepTime: stepTime})
	if err != nil {
		return nil, err
	}
	defer stop()
	onFake, err := b.live(ctx, "the fake Ironic", fake, false)
	if err != nil {
		return nil, err
	}
	endpoint := os.Getenv(realEndpoint)
	if endpoint == "" {
		return []life{onFake}, nil
	}
	onReal, err := b.live(ctx, "a real Ironic", endpoint, true)
	if err != nil {
		return []life{onFake}, err
	}
	return []life{onFake, onReal}, nil
}

// live applies, plans and destroys machines on an Ironic.
func (b *bench) live(ctx context.Context, ironic, endpoint string, login bool) (_ life, err error) {
	target, err := url.Parse(strings.TrimSuffix(strings.TrimSuffix(endpoint, "/"), "/v1"))
	if err != nil {
		return life{}, err
	}
	p, address, stop, err := startProxy(ctx, target)
	if err != nil {
		return life{}, err
	}
	defer stop()
	config := fmt.Sprintf("provider %q {%s}\n", "metal", b.providerSettings()) + machines(b.machines)
	w, err := newWorkspace(filepath.Join(b.dir, "life "+target.Host), b.cli, address, config)
	if err != nil {
		return life{}, err
	}
	w.login = login
	if login { // a fake forgets by itself
		defer func() { err = b.cleanUp(ctx, w, err) }()
	}
	l := life{ironic: ironic, machines: b.machines}
	for _, do := range []struct {
		name string
		run  func() (cost, error)
	}{
		{"apply", func() (cost, error) { return w.run(ctx, b.provider, "apply", "-auto-approve", parallelism) }},
		{"plan", func() (cost, error) { return w.emptyPlan(ctx, b.provider, parallelism) }},
		{"destroy", func() (cost, error) { return w.run(ctx, b.provider, "destroy", "-auto-approve", parallelism) }},
	} {
		b.say("%s: %s of %d machines", ironic, do.name, b.machines)
		took, err := do.run()
		if err != nil {
			return life{}, err
		}
		l.phases = append(l.phases, phase{do.name, took, p.take()})
	}
	return l, nil
}

// cleanUp removes what a measurement that failed has left on a real Ironic. It returns the error of the measurement, if any.
func (b *bench) cleanUp(ctx context.Context, w *workspace, failure error) error {
	if failure == nil {
		return nil
	}
	b.say("remove what was made")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	if _, err := w.run(ctx, b.provider, "destroy", "-auto-approve", parallelism); err != nil {
		return fmt.Errorf("%w\nwhat was made is left: %w", failure, err)
	}
	return failure
}

// providerSettings are the arguments of the provider block: none, unless -poll asks for one.
func (b *bench) providerSettings() string {
	if b.poll == 0 {
		return ""
	}
	return fmt.Sprintf(" poll_interval = %q ", b.poll)
}

// machines is the configuration of machines under names that no other run has. An allocation waits for all hosts, because it
// names one of them.
func machines(count int) string {
	unique := make([]byte, 3)
	_, _ = rand.Read(unique) // it never fails
	return fmt.Sprintf(`
resource "metal_host" "m" {
  count          = %[1]d
  name           = "bench-%[2]x-${count.index}"
  driver         = "fake-hardware"
  resource_class = "bench-%[2]x"
  ports          = { format("52:%[3]x:%[4]x:%[5]x:%%02x:%%02x", floor(count.index / 256), count.index %% 256) = { pxe_enabled = true } }
  target_state   = "available"
  power_state    = "off"
}

resource "metal_allocation" "m" {
  count           = %[1]d
  name            = "bench-%[2]x-${count.index}"
  resource_class  = "bench-%[2]x"
  candidate_nodes = [metal_host.m[count.index].id]
}

resource "metal_deployment" "m" {
  count         = %[1]d
  node_id       = metal_allocation.m[count.index].node_id
  allocation_id = metal_allocation.m[count.index].id
  image = {
    url         = "http://127.0.0.1/images/bench.qcow2"
    checksum    = "%[6]s"
    disk_format = "qcow2"
  }
}
`, count, unique, unique[:1], unique[1:2], unique[2:], strings.Repeat("a1", 32))
}

// printRequests prints how many requests each phase made, and which.
func printRequests(print printer, lives []life) {
	for _, l := range lives {
		print("\n### Requests on %s, %d machines\n\n", l.ironic, l.machines)
		print("| work | own | shared | lock | all a machine | in all |\n|---|---:|---:|---:|---:|---:|\n")
		all := map[request]bool{}
		for _, p := range l.phases {
			each := func(n int) string { return perMachine(n, l.machines) }
			print("| %s | %s | %s | %s | %s | %d |\n", p.name, each(p.of(own)), each(p.of(shared)), each(p.of(lock)),
				each(p.all()), p.all())
			for r := range p.counts {
				all[r] = true
			}
		}
		print("\n| request | counts as |")
		for _, p := range l.phases {
			print(" %s |", p.name)
		}
		print("\n|---|---|%s\n", strings.Repeat("---:|", len(l.phases)))
		for _, r := range slices.SortedFunc(maps.Keys(all), compareRequests) {
			print("| %s | %s |", r.kind, r.class)
			for _, p := range l.phases {
				print(" %s |", perMachine(p.counts[r], l.machines))
			}
			print("\n")
		}
	}
}

func compareRequests(a, b request) int {
	return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.kind, b.kind))
}

// perMachine is a count for each machine; nothing where there is none.
func perMachine(n, machines int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(n)/float64(machines))
}

// printTimes prints how long each phase took.
func printTimes(print printer, lives []life, poll time.Duration) {
	if len(lives) == 0 {
		return
	}
	interval := "the default poll_interval"
	if poll != 0 {
		interval = fmt.Sprintf("poll_interval %s", poll)
	}
	print("\n### Time, -parallelism=10\n\n| provider | machines | apply | plan | destroy |\n|---|---:|---:|---:|---:|\n")
	for _, l := range lives {
		print("| this one, %s, %s | %d |", l.ironic, interval, l.machines)
		for _, p := range l.phases {
			print(" %.1f s |", p.wall.Seconds())
		}
		print("\n")
	}
	print("| the older provider, measured once: it polls every 5 s | 100 | 498 s | | 75 s |\n")
}
