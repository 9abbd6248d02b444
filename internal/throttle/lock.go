package throttle

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
)

// Times of a lock.
const (
	leastLease   = time.Minute            // of a record without a renewal, until others may take the lock over
	longestLease = 15 * time.Minute       // of a record in which another one stands
	leaseAnswers = 10                     // the lease lasts at least so many of the site's answers
	renewAgain   = 2 * time.Second        // after a renewal that failed
	tellAfter    = 5 * time.Second        // of waiting
	tellEvery    = 30 * time.Second       // from then on
	lockTries    = 5                      // how many requests for a lock may fail in a row
	longestLook  = 500 * time.Millisecond // between two looks at a lock that another run holds, on average
	unseenFor    = 10 * time.Second       // that a record exists and cannot be read, until it counts as one of others
)

// Lock is a lock that all runs on a site share.
type Lock struct {
	Name        string
	Description string        // for people who find its record
	For         string        // what the caller wants to do, as an infinitive, for messages
	Wait        time.Duration // how long to wait for it; zero: until ctx ends
	Hold        time.Duration // longer than any run has it; zero: there is no such time
}

// KindLost is the kind of an error which says that another run has taken over a lock, because this one could not renew its record in time.
const KindLost fault.Kind = "lost lock"

// Locks takes locks of a site for a process, of which one caller at a time waits for a lock. It is safe for concurrent use.
type Locks struct {
	records Records
	mu      sync.Mutex
	inside  map[string]*inside
	left    map[string]Record // that this process has left with words
	seen    sightings
}

// inside is the mutex of a lock within the process.
type inside struct {
	token chan struct{} // holds a value while a caller has the lock or waits for its record
	users int
}

// NewLocks returns the locks of a site.
func NewLocks(records Records) *Locks {
	return &Locks{records: records, inside: map[string]*inside{}, left: map[string]Record{}}
}

// With calls do while this process has a lock, which at most one caller on the site has. It renews the record of the lock meanwhile. It
// takes over a record that a dead run has left. do gets a context that ends when the lock is lost; With then returns an error of KindLost.
// If the lock is not free in time, With returns one of KindLocked. If the user may not write records, it calls do with the lock of this
// process alone.
func (l *Locks) With(ctx context.Context, lock Lock, do func(ctx context.Context) error) error {
	held, _, release, err := l.take(ctx, lock)
	if err != nil && !fault.Is(err, kindNotAllowed) {
		return err
	}
	defer release(nil)
	err = do(held)
	if lost := fault.As(context.Cause(held), KindLost); lost != nil {
		return lost
	}
	return err
}

// Look reads the record of a lock, and changes nothing. It returns the record's standing; "" if there is none.
func (l *Locks) Look(ctx context.Context, name string) (Standing, error) {
	record, err := l.records.Read(ctx, name)
	if err != nil || record == nil {
		return "", err
	}
	return record.Standing(), nil
}

// IsHeld reports whether a run has a lock. It counts as held until this process has seen for the lease that nobody renews it. IsHeld
// deletes the record that a dead run has left.
func (l *Locks) IsHeld(ctx context.Context, name string) (bool, error) {
	record, standing, err := l.see(ctx, name)
	if standing == Left {
		err = l.remove(ctx, record)
	}
	return standing == Held, err
}

// Discard deletes the record of a lock whose holder the caller knows to be dead, unless a run renews it at this moment.
func (l *Locks) Discard(ctx context.Context, name string) error {
	record, err := l.records.Read(ctx, name)
	if err != nil || record == nil {
		return err
	}
	return l.remove(ctx, record)
}

// remove deletes the record of a dead run, unless a run has renewed it or taken it over meanwhile: it takes the record over before.
func (l *Locks) remove(ctx context.Context, dead *Record) error {
	mine := *dead
	mine.Holder = rand.Text()
	if replaced, err := l.records.Replace(ctx, dead.Holder, mine); !replaced {
		return err
	}
	return l.records.Delete(ctx, dead.Name)
}

// take takes a lock. If the user may not write records, the caller has the lock of this process alone. With any other error, it has none.
// held ends when the lock is lost. found is the record, with the words that others have left in it. release leaves words for the next
// holder.
func (l *Locks) take(ctx context.Context, lock Lock) (held context.Context, found Found, release func(leave []Word), err error) {
	waiting := ctx
	if lock.Wait > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, lock.Wait)
		defer cancel()
	}
	leave, err := l.enter(ctx, waiting, lock)
	if err != nil {
		return nil, found, nil, err
	}
	defer func() {
		if release == nil { // an error, or a panic
			leave()
		}
	}()
	record := Record{Name: lock.Name, Description: lock.Description, Holder: rand.Text(), Lease: l.lease()}
	taken, blocked, err := l.acquire(ctx, waiting, lock, &record)
	if fault.Is(err, kindNotAllowed) {
		return ctx, found, func([]Word) { leave() }, err
	}
	if err == nil && time.Since(taken) > record.lease()/3 { // the site is slow: its lease follows that
		taken, err = l.lengthen(waiting, lock, &record, taken)
	}
	if err != nil {
		return nil, found, nil, err
	}
	held, stop := l.renewed(ctx, lock, record, taken)
	return held, Found{Words: record.Words, Blocked: blocked}, func(words []Word) {
		defer leave()
		if at := stop(); !at.IsZero() {
			l.release(context.WithoutCancel(ctx), record, at, words)
		}
	}, nil
}

// lengthen renews a record that was taken at a time with a lease that fits what the site's answers take now, and returns when it did. If
// the request fails, the record is as it was.
func (l *Locks) lengthen(ctx context.Context, lock Lock, record *Record, taken time.Time) (time.Time, error) {
	asked, next := time.Now(), *record
	next.Lease = l.lease()
	next.Renewals++
	switch renewed, err := l.records.Replace(ctx, record.Holder, next); {
	case renewed:
		*record = next
		return asked, nil
	case err == nil:
		return taken, lost(lock)
	}
	return taken, nil
}

// lost is the error of a run that has lost a lock.
func lost(lock Lock) error {
	return &fault.Error{
		Kind: KindLost, Advice: "Check that Ironic answers, and try again.",
		Fact: fmt.Sprintf("the site did not answer for so long that another run may %s now, so this one stopped", lock.For),
	}
}

// lease returns how long this process has a lock without a renewal. It lasts for many answers, however slow the site is.
func (l *Locks) lease() time.Duration {
	return min(max(leastLease, leaseAnswers*l.records.AnswersTake()), longestLease)
}

// Found is what a caller finds when it takes a lock.
type Found struct {
	Words   []Word
	Blocked time.Duration // how long a dead run had the lock, so that no run could renew its words
}

// enter takes the lock within the process.
func (l *Locks) enter(ctx, waiting context.Context, lock Lock) (leave func(), err error) {
	l.mu.Lock()
	in := l.inside[lock.Name]
	if in == nil {
		in = &inside{token: make(chan struct{}, 1)}
		l.inside[lock.Name] = in
	}
	in.users++
	l.mu.Unlock()
	gone := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if in.users--; in.users == 0 {
			delete(l.inside, lock.Name)
		}
	}
	tell := time.NewTimer(tellAfter)
	defer tell.Stop()
	for begun := time.Now(); ; {
		select {
		case in.token <- struct{}{}:
			return func() { <-in.token; gone() }, nil
		case <-tell.C:
			l.tell(ctx, &Locked{Lock: lock, After: time.Since(begun)})
			tell.Reset(tellEvery)
		case <-waiting.Done():
			gone()
			return nil, notFree(ctx, &Locked{Lock: lock, After: time.Since(begun)})
		}
	}
}

// renewed renews a record that was just taken until stop is called. held ends before others may take the lock over. stop returns when the
// record was renewed last; zero if it is lost.
func (l *Locks) renewed(ctx context.Context, lock Lock, record Record, taken time.Time) (held context.Context, stop func() time.Time) {
	held, end := context.WithCancelCause(ctx)
	renewing, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a holder that the user has interrupted may still clean up
	lose := func() { end(lost(lock)) }
	keepFor := func() time.Duration { return record.lease() * 5 / 6 }
	late := time.AfterFunc(time.Until(taken.Add(keepFor())), lose)
	done := routine.Go(func() {
		defer late.Stop()
		for pause := record.lease() / 3; rest.Sleep(renewing, pause) == nil; {
			asked := time.Now()
			record.Renewals++
			next := record
			next.Lease = max(next.Lease, l.lease())
			renewed, err := l.records.Replace(renewing, record.Holder, next)
			if renewed {
				record = next
			}
			switch {
			case renewing.Err() != nil:
				return
			case renewed && late.Reset(time.Until(asked.Add(keepFor()))):
				taken, pause = asked, record.lease()/3
			case err == nil || held.Err() != nil:
				taken = time.Time{}
				lose()
				return
			default:
				pause = renewAgain
			}
		}
	}, func(err *routine.PanicError) {
		l.records.Log(ctx, slog.LevelError, "panic while a lock was renewed", "lock", lock.Name, "panic", err.Value, "stack", err.Stack)
		taken = time.Time{}
		lose()
	})
	return held, func() time.Time {
		cancel()
		<-done
		end(nil)
		return taken
	}
}

// release deletes the record of a lock that was renewed at a time, or leaves it with words. It repeats failed requests, because a record
// that stays delays all runs by the lease. After half of the lease it lets the record expire, because the record may belong to another run
// by the time the request arrives.
func (l *Locks) release(ctx context.Context, record Record, renewed time.Time, words []Word) {
	left := record
	left.From, left.Words, left.Released = "", words, true
	left.Renewals++
	for time.Since(renewed) < record.lease()/2 {
		var err error
		if record.From != "" { // this record leads to it
			err = l.records.Delete(ctx, takeoverOf(record.From))
		}
		switch {
		case err != nil:
		case len(words) == 0:
			err = l.records.Delete(ctx, record.Name)
		default:
			_, err = l.records.Replace(ctx, record.Holder, left)
		}
		if err == nil {
			l.keep(left, words)
			return
		}
		if rest.Sleep(ctx, 500*time.Millisecond) != nil {
			return
		}
	}
}

// keep remembers a record that was left with words. If no other run takes the lock until then, the next caller takes it without a read.
func (l *Locks) keep(left Record, words []Word) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.left, left.Name)
	if len(words) > 0 {
		l.left[left.Name] = left
	}
}

// kept returns such a record once; nil if there is none.
func (l *Locks) kept(name string) *Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	left, found := l.left[name]
	delete(l.left, name)
	if !found {
		return nil
	}
	return &left
}
