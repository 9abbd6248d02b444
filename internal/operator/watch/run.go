package watch

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
)

// Display shows a view. Its methods are called one after the other.
type Display interface {
	// Update shows a new sample and what has changed.
	Update(v View, changes []Change) error
	// Trouble shows that a list could not be read. The next one will be tried.
	Trouble(v View, err error)
	// Tick is called every second between samples.
	Tick(v View) error
	// End shows the last view.
	End(v View) error
}

// Options are the parameters of Run.
type Options struct {
	List      func(ctx context.Context) (Sample, error)
	MayPass   func(error) bool // reports whether to continue after an error of List
	Patient   bool             // also after an error of the first list
	Interval  time.Duration    // between the starts of two lists
	UntilIdle time.Duration    // Run ends when nothing has been in progress for this time; zero: never
	Keep      time.Duration    // how long the model remembers what machines did; zero: always
	Displays  []Display
}

// restFor is the pause after a list as a multiple of its duration, so that polling does not burden a slow Ironic.
const restFor = 20

// tick is the time between two calls of Tick.
const tick = time.Second

// KindList is the kind of the error of a list that has ended Run.
const KindList fault.Kind = "list"

// Run reads lists and shows them until ctx ends, or nothing has been in progress for Options.UntilIdle. It returns the last view. It fails
// with an error of KindList if the first list does, or if a list fails with an error that does not pass, and with another error if a
// display cannot be written.
func Run(ctx context.Context, m *Model, o Options) (View, error) {
	r := &runner{m: m, o: o}
	err := r.loop(ctx)
	if m.began.IsZero() {
		return View{}, err
	}
	v := r.view()
	for _, d := range o.Displays {
		if failed := d.End(v); err == nil {
			err = failed
		}
	}
	return v, err
}

type runner struct {
	m     *Model
	o     Options
	taken time.Time // when the last sample arrived, by the local clock
}

// view is the view now: the time of the last sample and the time since then.
func (r *runner) view() View {
	if r.taken.IsZero() {
		return View{Now: time.Now()}
	}
	return r.m.View(r.m.now.Add(time.Since(r.taken)))
}

type answer struct {
	sample Sample
	took   time.Duration
	err    error
}

func (r *runner) loop(ctx context.Context) error {
	for {
		pause := r.o.Interval
		got, err := r.list(ctx)
		switch {
		case err != nil || ctx.Err() != nil:
			return err
		case got.err != nil && (r.m.began.IsZero() && !r.o.Patient || !r.o.MayPass(got.err)):
			return &fault.Error{Kind: KindList, Fact: got.err.Error(), Err: got.err}
		case got.err != nil:
			for _, d := range r.o.Displays {
				d.Trouble(r.view(), got.err)
			}
		default:
			if err := r.update(got.sample); err != nil {
				return err
			}
			pause = max(pause-got.took, restFor*got.took)
			if r.o.UntilIdle > 0 && r.m.Idle() >= r.o.UntilIdle {
				return nil
			}
		}
		if _, err := await(ctx, time.After(pause), r.tick); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// list reads a list, while the displays go on.
func (r *runner) list(ctx context.Context) (answer, error) {
	got := make(chan answer, 1)
	began := time.Now()
	routine.Go(func() {
		sample, err := r.o.List(ctx)
		got <- answer{sample, time.Since(began), err}
	}, func(err *routine.PanicError) { got <- answer{Sample{}, time.Since(began), err} })
	return await(ctx, got, r.tick)
}

func (r *runner) update(s Sample) error {
	changes := r.m.Add(s)
	if r.o.Keep > 0 {
		r.m.Forget(s.Taken.Add(-r.o.Keep))
	}
	r.taken = time.Now()
	v := r.view()
	for _, d := range r.o.Displays {
		if err := d.Update(v, changes); err != nil {
			return err
		}
	}
	return nil
}

// tick calls Tick of all displays, once there is a sample.
func (r *runner) tick() error {
	if r.m.began.IsZero() {
		return nil
	}
	v := r.view()
	for _, d := range r.o.Displays {
		if err := d.Tick(v); err != nil {
			return err
		}
	}
	return nil
}

// await receives a value, and calls each every second until it comes or ctx ends.
func await[T any](ctx context.Context, from <-chan T, each func() error) (got T, err error) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case got = <-from:
			return got, nil
		case <-ctx.Done():
			return got, nil
		case <-ticker.C:
			if err := each(); err != nil {
				return got, err
			}
		}
	}
}
