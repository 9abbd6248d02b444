package ironic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// chassis is the one kind of record in Ironic that is created at most once under a UUID of the caller's choice, that
// nothing else depends on, and that carries data: what a lock needs.
type chassis struct {
	UUID        string         `json:"uuid"`
	Description string         `json:"description"`
	Extra       map[string]any `json:"extra"`
	CreatedAt   string         `json:"created_at,omitempty"`
}

const (
	lockDescription     = "terraform-provider-metal: admission lock, held for seconds"
	takeoverDescription = "terraform-provider-metal: takeover from a run that died; may be deleted"
)

// lockNamespace is the namespace of the UUIDs of locks. Runs of all versions of this provider must agree on it.
const lockNamespace = "2e9c9d9e-6f0a-4a9e-9d0e-6d6574616c21"

// lock takes the lock record of this Ironic and returns the function that gives it back. A record that is older than the
// lease was left by a run that died, and is taken over. Where the record may not be written, the limit holds inside this
// process only from then on, which is said once.
func (g *gate) lock(ctx context.Context) (unlock func(), err error) {
	record := chassis{
		UUID: uuid5(lockNamespace, "admission"), Description: lockDescription, Extra: map[string]any{"holder": NewUUID()},
	}
	answered, stop := outlast(ctx)
	defer stop()
	for {
		taken := time.Now()
		err := g.c.do(answered, http.MethodPost, "chassis", record, nil)
		switch {
		case err == nil:
			return func() { g.unlock(context.WithoutCancel(ctx), record.UUID, taken) }, nil
		case isForbidden(err):
			g.mu.Lock()
			g.unlocked = true
			g.stats.notLocked(err)
			g.mu.Unlock()
			return func() {}, nil
		case !isStatus(err, http.StatusConflict, "") && !isTransient(err):
			return nil, err
		}
		held, err := g.c.chassis(answered, record.UUID)
		if err == nil && held.Extra["holder"] == record.Extra["holder"] { // the answer was lost
			return func() { g.unlock(context.WithoutCancel(ctx), record.UUID, taken) }, nil
		}
		if err == nil && g.c.age(held) > lease {
			err = g.takeOver(ctx, held)
		}
		if err != nil && !IsNotFound(err) && !isTransient(err) {
			return nil, err
		}
		if err := sleep(ctx, 100*time.Millisecond+rand.N(300*time.Millisecond)); err != nil { //nolint:gosec // jitter
			return nil, err
		}
	}
}

// isForbidden reports whether the user may not write lock records, or this Ironic has none.
func isForbidden(err error) bool {
	return isStatus(err, http.StatusForbidden, "") || IsNotFound(err) || isStatus(err, http.StatusMethodNotAllowed, "")
}

// unlock deletes the lock record, and keeps at it: a record that stays delays everybody by the lease. Once half the lease
// has gone it is left to expire, lest it be somebody else's by the time the request arrives.
func (g *gate) unlock(ctx context.Context, id string, taken time.Time) {
	for time.Since(taken) < lease/2 {
		err := g.c.do(ctx, http.MethodDelete, "chassis/"+id, nil, nil)
		if err == nil || IsNotFound(err) {
			return
		}
		if sleep(ctx, firstBackoff) != nil {
			return
		}
	}
}

// takeOver deletes the lock record of a run that died.
func (g *gate) takeOver(ctx context.Context, held *chassis) error {
	_, err := g.c.takeOver(ctx, fmt.Sprint(held.Extra["holder"]), lease, func() error {
		now, err := g.c.chassis(ctx, held.UUID)
		if err == nil && now.Extra["holder"] == held.Extra["holder"] {
			err = g.c.do(ctx, http.MethodDelete, "chassis/"+held.UUID, nil, nil)
		}
		if IsNotFound(err) {
			return nil
		}
		return err
	})
	return err
}

// takeOver takes away what a dead run holds: free is called by only one of those who want to, the one who creates the
// takeover record of the holder. free has to look again whether the holder still is the same. A record that was itself
// left behind expires.
func (c *Client) takeOver(ctx context.Context, holder string, expires time.Duration, free func() error) (mine bool, err error) {
	mark := chassis{UUID: uuid5(lockNamespace, "takeover:"+holder), Description: takeoverDescription, Extra: map[string]any{}}
	err = c.do(ctx, http.MethodPost, "chassis", mark, nil)
	if isStatus(err, http.StatusConflict, "") {
		if left, lerr := c.chassis(ctx, mark.UUID); lerr == nil && c.age(left) > expires {
			return false, c.do(ctx, http.MethodDelete, "chassis/"+mark.UUID, nil, nil)
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := free(); err != nil {
		return true, err
	}
	err = c.do(ctx, http.MethodDelete, "chassis/"+mark.UUID, nil, nil)
	if IsNotFound(err) {
		err = nil
	}
	return true, err
}

func (c *Client) chassis(ctx context.Context, id string) (*chassis, error) {
	var record chassis
	if err := c.do(ctx, http.MethodGet, "chassis/"+id, nil, &record); err != nil {
		return nil, err
	}
	return &record, nil
}

// age is how old a record is by the server's clock; zero if that cannot be told.
func (c *Client) age(record *chassis) time.Duration {
	created, err := time.Parse(time.RFC3339, record.CreatedAt)
	if err != nil {
		return 0
	}
	return c.serverNow().Sub(created)
}
