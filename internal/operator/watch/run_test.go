package watch_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

var (
	errPasses = errors.New("503 Service Unavailable")
	errStays  = errors.New("401 Unauthorized")
)

// show counts what a display was told.
type show struct {
	updates, troubles, ticks, ends int
}

func (s *show) Update(watch.View, []watch.Change) error { s.updates++; return nil }
func (s *show) Trouble(watch.View, error)               { s.troubles++ }
func (s *show) Tick(watch.View) error                   { s.ticks++; return nil }
func (s *show) End(watch.View) error                    { s.ends++; return nil }

// options are those of a watch of one machine, which is deployed from the third to the sixth minute. answer replaces single answers.
func options(d watch.Display, takes time.Duration, answer func(list int) error) watch.Options {
	begin, lists := time.Now(), 0
	return watch.Options{
		Interval: 10 * time.Second, Displays: []watch.Display{d}, MayPass: func(err error) bool { return errors.Is(err, errPasses) },
		List: func(ctx context.Context) (watch.Sample, error) {
			select {
			case <-ctx.Done():
				return watch.Sample{}, ctx.Err()
			case <-time.After(takes):
			}
			lists++
			if answer != nil {
				if err := answer(lists); err != nil {
					return watch.Sample{}, err
				}
			}
			one := watch.Machine{ID: "1", Name: "rack1-01", State: "available", Since: begin}
			switch since := time.Since(begin); {
			case since > 6*time.Minute:
				one.State = "active"
			case since > 3*time.Minute:
				one.State, one.InProgress = "deploying", true
			}
			return watch.Sample{Taken: time.Now(), Machines: []watch.Machine{one}}, nil
		},
	}
}

func TestRun_endsWhenNothingIsInProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, begin := &show{}, time.Now()
		o := options(d, 0, nil)
		o.UntilIdle = 4 * time.Minute
		v, err := watch.Run(t.Context(), watch.NewModel("active", 0), o)
		if lasted := time.Since(begin); err != nil || v.Done != 1 || lasted < 10*time.Minute || lasted > 10*time.Minute+30*time.Second {
			t.Errorf("%d done after %s, %v", v.Done, lasted, err)
		}
		if d.updates < 60 || d.ticks < 500 || d.ends != 1 {
			t.Errorf("told %+v", d)
		}
	})
}

func TestRun_goesOnWhenIronicDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &show{}
		o := options(d, 0, func(list int) error {
			if list > 1 && list < 30 { // for longer than UntilIdle
				return errPasses
			}
			return nil
		})
		o.UntilIdle = 2 * time.Minute
		v, err := watch.Run(t.Context(), watch.NewModel("active", 0), o)
		if err != nil || v.Done != 1 || d.troubles != 28 {
			t.Errorf("%d done, told %+v, %v", v.Done, d, err)
		}
	})
}

func TestRun_failsIfItCannotRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		failing int
		err     error
		ends    int
	}{
		"the first list": {1, errPasses, 0},
		"for good":       {3, errStays, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &show{}
				_, err := watch.Run(t.Context(), watch.NewModel("", 0), options(d, 0, func(list int) error {
					if list == tc.failing {
						return tc.err
					}
					return nil
				}))
				if !errors.Is(err, tc.err) || d.ends != tc.ends {
					t.Errorf("error %v, told %+v", err, d)
				}
			})
		})
	}
}

func TestRun_leavesASlowIronicInPeace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &show{}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		v, err := watch.Run(ctx, watch.NewModel("active", 0), options(d, 5*time.Second, nil))
		if err != nil || v.Done != 1 || d.updates > 36 {
			t.Errorf("%d lists of 5 s in an hour, %v", d.updates, err)
		}
	})
}

// The client repeats a request for a while before it fails. The next list follows after an interval all the same.
func TestRun_triesAgainAfterAnInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &show{}
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
		defer stop()
		failing := false
		o := options(d, 0, nil)
		list := o.List
		o.List = func(ctx context.Context) (watch.Sample, error) {
			if failing {
				select {
				case <-ctx.Done():
				case <-time.After(15 * time.Second):
				}
				return watch.Sample{}, errPasses
			}
			failing = true
			return list(ctx)
		}
		if _, err := watch.Run(ctx, watch.NewModel("", 0), o); err != nil || d.troubles != 4 {
			t.Errorf("told %+v, %v", d, err)
		}
	})
}

func TestRun_stopsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(95*time.Second, stop)
		begin := time.Now()
		v, err := watch.Run(ctx, watch.NewModel("", 0), options(&show{}, 30*time.Second, nil))
		if err != nil || v.Selected != 1 || time.Since(begin) != 95*time.Second {
			t.Errorf("ended after %s, %v", time.Since(begin), err)
		}
	})
}

func TestRun_endsWhenItsOutputIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out, in := io.Pipe()
		_ = out.Close()
		_, err := watch.Run(t.Context(), watch.NewModel("", 0), options(&watch.Lines{Out: in, Err: io.Discard}, 0, nil))
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("error %v", err)
		}
	})
}
