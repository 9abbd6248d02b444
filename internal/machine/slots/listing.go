package slots

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Found is a record of a lock as it is found in Ironic. Its name is not known: Ironic has only an UUID that was made from it.
type Found struct {
	throttle.Record
	Object string // as users find it in Ironic, such as "chassis UUID"
	path   string
}

// recordKinds are all kinds of records.
var recordKinds = []recordKind{chassisRecords, allocationRecords}

// Find lists the records of all locks that the user may see. With an error, it returns those that it could list: a user of a project may
// see no chassis.
func Find(ctx context.Context, client *ironic.Client) (all []Found, err error) {
	for _, kind := range recordKinds {
		found, refused := list(ctx, client, kind)
		all = append(all, found...)
		if err == nil || refused != nil && refused.Error() != err.Error() { // bad credentials are one error, and not two
			err = errors.Join(err, refused)
		}
	}
	return all, err
}

// Waiting returns what runs say of their machines that wait for a slot, with times by Ironic's clock. If Ironic refuses a list, it returns
// what the other says together with the refusal (api.IsForbidden): more machines may wait. It asks once an hour for what Ironic refuses,
// because Ironic logs each refusal, and a watch that runs for weeks must see that its user has got the right.
func (l *Limiter) Waiting(ctx context.Context) (words []throttle.Word, err error) {
	var refused error
	for _, kind := range recordKinds {
		known, _ := l.refused.Load(kind)
		if last, is := known.(refusal); is && time.Since(last.at) < askAgain {
			refused = last.err
			continue
		}
		found, err := list(ctx, l.client, kind)
		if api.IsForbidden(err) {
			refused = err
			l.refused.Store(kind, refusal{err, time.Now()})
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range found {
			words = append(words, found[i].WaitingAt(l.client.ServerNow())...)
		}
	}
	return words, refused
}

// askAgain is how long a refusal counts.
const askAgain = time.Hour

type refusal struct {
	err error
	at  time.Time
}

func list(ctx context.Context, client *ironic.Client, kind recordKind) (all []Found, err error) {
	query := url.Values{"detail": {"true"}}
	if kind == allocationRecords {
		query = url.Values{"resource_class": {ironic.RecordClass}}
	}
	records, err := api.List[record](ctx, client.Conn, string(kind), string(kind), query)
	for i := range records {
		if found, is := foundIn(client, kind, &records[i]); is {
			all = append(all, found)
		}
	}
	return all, err
}

// Alive returns the runs that records say are alive at a time by Ironic's clock: they hold a lock, or their machines wait for a slot.
func Alive(records []Found, now time.Time) map[string]bool {
	alive := map[string]bool{}
	for i := range records {
		r := &records[i]
		if r.Run != "" && r.Standing() == throttle.Held {
			alive[r.Run] = true
		}
		for _, w := range r.WaitingAt(now) {
			alive[w.Run] = true
		}
	}
	return alive
}

// describes begins the descriptions of all records.
const describes = "terraform-provider-metal: "

// foundIn returns the record that an object of Ironic is; false if it is another client's.
func foundIn(client *ironic.Client, kind recordKind, body *record) (found Found, is bool) {
	found = Found{Record: body.content(client.ServerNow()), path: string(kind) + "/" + body.UUID, Object: "chassis " + body.UUID}
	if kind == allocationRecords {
		var extra recordExtra
		_ = json.Unmarshal(body.Extra, &extra) // content has accepted it
		found.Description, found.Object = extra.About, "allocation "+body.UUID
	}
	if found.Holder == "" || !strings.HasPrefix(found.Description, describes) {
		return found, false
	}
	found.Description = strings.TrimPrefix(found.Description, describes)
	return found, true
}

// WatchFor is how long RemoveLeft watches a record at most: no lease is longer.
const WatchFor = 20 * time.Minute

// watchEvery is the time between two looks at such a record.
const watchEvery = 10 * time.Second

// errUnwatched is why a record was not deleted that may be a living run's.
var errUnwatched = errors.New("it was not watched for its whole lease. Run the command again")

// RemoveLeft deletes a record that a dead run has left. It watches the record for its lease before, because the clocks of the site may be
// wrong, and reports false if a run has renewed it, or has taken it over, since it was found.
func RemoveLeft(ctx context.Context, client *ironic.Client, found Found) (removed bool, err error) {
	s := &limited{c: client, at: found.path}
	s.noChassis.Store(strings.HasPrefix(found.path, string(allocationRecords)))
	for locks := throttle.NewLocks(s); ; {
		now, err := s.Read(ctx, found.path)
		if err != nil || now == nil || now.Holder != found.Holder || now.Renewals != found.Renewals {
			return false, err
		}
		if _, err = locks.IsHeld(ctx, found.path); err != nil {
			return false, err
		}
		if now, err = s.Read(ctx, found.path); now == nil {
			return err == nil, err
		}
		if rest.Sleep(ctx, watchEvery) != nil {
			return false, errUnwatched
		}
	}
}
