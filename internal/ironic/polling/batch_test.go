package polling

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// store is objects that take a second to read, singly or all at once.
type store struct {
	mu      sync.Mutex
	objects map[string]string
	singles []string
	lists   int
	one     func(id string) // called before a single read
	all     func()          // called before a list
}

func (s *store) batch() *Batch[string] {
	return NewBatch(s.readOne, s.readAll)
}

func (s *store) readOne(ctx context.Context, id string) (*string, error) {
	s.mu.Lock()
	s.singles = append(s.singles, id)
	s.mu.Unlock()
	if s.one != nil {
		s.one(id)
	}
	if err := rest.Sleep(ctx, time.Second); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.objects[id]
	if !ok {
		return nil, &api.StatusError{Status: 404}
	}
	return &value, nil
}

func (s *store) readAll(ctx context.Context) (map[string]*string, error) {
	s.mu.Lock()
	s.lists++
	s.mu.Unlock()
	if s.all != nil {
		s.all()
	}
	if err := rest.Sleep(ctx, time.Second); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := map[string]*string{}
	for id, value := range s.objects {
		list[id] = &value
	}
	return list, nil
}

// numbered is a store with n objects, "0" to n-1, each with its id as value.
func numbered(n int) *store {
	s := &store{objects: map[string]string{}}
	for i := range n {
		s.objects[fmt.Sprint(i)] = fmt.Sprint(i)
	}
	return s
}

func TestBatch_loneReadIsSingle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := numbered(100)
		b := s.batch()
		for _, id := range []string{"1", "2", "3"} {
			if value, err := b.Get(t.Context(), id); err != nil || *value != id {
				t.Fatal(err)
			}
			<-time.After(snapshotAge)
		}
		if len(s.singles) != 3 || s.lists != 0 {
			t.Errorf("%d single reads and %d lists", len(s.singles), s.lists)
		}
	})
}

func TestBatch_concurrentReadsShareList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := numbered(1000)
		b := s.batch()
		var wg sync.WaitGroup
		turns := make(chan struct{}, 10) // as many at a time as Terraform has by default
		for i := range 1000 {
			wg.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				if value, err := b.Get(t.Context(), fmt.Sprint(i)); err != nil || *value != fmt.Sprint(i) {
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if len(s.singles) != 1 || s.lists != 1 {
			t.Errorf("%d single reads and %d lists, want 1 and 1", len(s.singles), s.lists)
		}
	})
}

func TestBatch_successiveReadsShareList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := numbered(100)
		b := s.batch()
		for i := range 100 {
			if value, err := b.Get(t.Context(), fmt.Sprint(i)); err != nil || *value != fmt.Sprint(i) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if len(s.singles) != fewReads || s.lists != 1 {
			t.Errorf("%d single reads and %d lists, want %d and 1", len(s.singles), s.lists, fewReads)
		}
	})
}

// listed is a batch that has a list to answer from.
func listed(t *testing.T, s *store) *Batch[string] {
	t.Helper()
	b := s.batch()
	var wg sync.WaitGroup
	for _, id := range []string{"0", "1", "2"} {
		wg.Go(func() {
			if _, err := b.Get(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s.lists != 1 {
		t.Fatalf("%d lists, want 1", s.lists)
	}
	s.singles = nil
	b.singles = 0
	return b
}

func TestBatch_writeOutdatesList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := numbered(100)
		b := listed(t, s)
		s.objects["7"] = "changed"
		b.Invalidate("7")
		if value, err := b.Get(t.Context(), "7"); err != nil || *value != "changed" {
			t.Errorf("after a write: %v, %v", *value, err)
		}
		if value, err := b.Get(t.Context(), "8"); err != nil || *value != "8" || len(s.singles) != 1 {
			t.Errorf("others are read again for it: %v", s.singles)
		}
	})
}

func TestBatch_writeDuringList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := numbered(100)
		b := s.batch()
		s.all = func() { // its answer is about to be computed; the write comes half way through
			time.AfterFunc(500*time.Millisecond, func() { b.Invalidate("1") })
		}
		var wg sync.WaitGroup
		for _, id := range []string{"0", "1", "2"} {
			wg.Go(func() {
				if _, err := b.Get(t.Context(), id); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		singles := map[string]int{}
		for _, id := range s.singles {
			singles[id]++
		}
		if singles["1"] != 1 && s.singles[0] != "1" {
			t.Errorf("read singly: %v, want the written one among them", s.singles)
		}
	})
}

func TestBatch_oldListIsNotUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := numbered(100)
		b := listed(t, s)
		s.objects["7"] = "changed"
		<-time.After(snapshotAge + time.Second)
		if value, err := b.Get(t.Context(), "7"); err != nil || *value != "changed" {
			t.Errorf("a minute later: %v, %v", *value, err)
		}
	})
}

func TestBatch_missingObjectIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := numbered(100)
		b := listed(t, s)
		if _, err := b.Get(t.Context(), "gone"); !api.IsNotFound(err) {
			t.Errorf("get = %v, want not found", err)
		}
		if len(s.singles) != 1 {
			t.Errorf("%d single reads, want 1: a list alone is no proof of absence", len(s.singles))
		}
	})
}

func TestBatch_interruptedReader(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond} { // in its own read, in the list
		synctest.Test(t, func(t *testing.T) {
			s := numbered(100)
			b := s.batch()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(after, cancel)
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := b.Get(ctx, "0"); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			for i := 1; i < 10; i++ {
				wg.Go(func() {
					<-time.After(time.Millisecond)
					if value, err := b.Get(t.Context(), fmt.Sprint(i)); err != nil || *value != fmt.Sprint(i) {
						t.Errorf("%d: %v", i, err)
					}
				})
			}
			wg.Wait()
			if len(s.singles) > 3 || s.lists > 2 {
				t.Errorf("%d single reads and %d lists to make up for it", len(s.singles), s.lists)
			}
		})
	}
}

func TestBatch_panickingReader(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]func(*store, func()){
		"its own read": func(s *store, crash func()) { s.one = func(string) { crash() } },
		"the list":     func(s *store, crash func()) { s.all = crash },
		"what the list lacks": func(s *store, crash func()) {
			delete(s.objects, "5")
			s.one = func(id string) {
				if id == "5" {
					crash()
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := numbered(100)
				var once sync.Once
				in(s, func() {
					<-time.After(time.Second) // others come meanwhile
					once.Do(func() { panic("broken answer") })
				})
				b := s.batch()
				var panics atomic.Int32
				var wg sync.WaitGroup
				for i := range 10 {
					wg.Go(func() {
						defer func() {
							if recover() != nil {
								panics.Add(1)
							}
						}()
						if _, err := b.Get(t.Context(), fmt.Sprint(i)); err != nil && i != 5 {
							t.Errorf("%d: %v", i, err)
						}
					})
				}
				wg.Wait() // or synctest finds the deadlock
				if panics.Load() != 1 {
					t.Errorf("%d panics, want that of one reader", panics.Load())
				}
			})
		})
	}
}

func TestBatch_failedListFailsAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := numbered(10)
		b := NewBatch(s.readOne, func(ctx context.Context) (map[string]*string, error) {
			return nil, errors.Join(rest.Sleep(ctx, time.Second), &api.StatusError{Status: 403})
		})
		var failed atomic.Int32
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if _, err := b.Get(t.Context(), fmt.Sprint(i)); api.IsStatus(err, 403, "") {
					failed.Add(1)
				}
			})
		}
		wg.Wait()
		if failed.Load() != 9 {
			t.Errorf("%d readers were told, want 9: all but the first, which read singly", failed.Load())
		}
	})
}
