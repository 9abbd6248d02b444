package slots

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// A record of a lock is an object in Ironic that can be created only once under a given UUID, that nothing depends on, and that carries
// data. That is a chassis. A user who may not create one, such as that of a project, takes an allocation of a class that no node has: it
// fails at once and stays, and all users of the project see it (reference/limit.md#locks-of-a-project).
type recordKind string

const (
	chassisRecords    recordKind = "chassis"
	allocationRecords recordKind = "allocations"
)

type record struct {
	UUID        string          `json:"uuid"`
	Description string          `json:"description,omitempty"`    // of a chassis
	Class       string          `json:"resource_class,omitempty"` // of an allocation
	Extra       json.RawMessage `json:"extra"`
	CreatedAt   string          `json:"created_at,omitempty"`
	UpdatedAt   string          `json:"updated_at,omitempty"`
}

// recordExtra is extra of a record. The holder is the only key of an object: a patch that replaces this key fails if the record has another
// holder (reference/limit.md#renewing-a-lock).
type recordExtra struct {
	Holders map[string]int `json:"holders,omitempty"` // holder -> how often it has renewed the record
	From    string         `json:"from,omitempty"`
	Run     string         `json:"run,omitempty"`
	Lease   int            `json:"lease,omitempty"` // in seconds
	About   string         `json:"about,omitempty"` // for people who find an allocation

	Released bool            `json:"released,omitempty"`
	Waiting  []throttle.Word `json:"waiting,omitempty"`

	Freeze *throttle.Freeze `json:"freeze,omitempty"`
}

func (s *limited) extraOf(kind recordKind, record throttle.Record) recordExtra {
	extra := recordExtra{
		From: record.From, Run: s.run, Lease: int(record.Lease / time.Second), Released: record.Released, Waiting: record.Words,
		Freeze: record.Freeze,
	}
	if record.Holder != "" {
		extra.Holders = map[string]int{record.Holder: record.Renewals}
	}
	if kind == allocationRecords {
		extra.About = record.Description
	}
	return extra
}

// recordNamespace is the namespace of the records' UUIDs. All versions of this provider must use the same.
const recordNamespace = "2e9c9d9e-6f0a-4a9e-9d0e-6d6574616c21"

// kind returns which records this user may write, as far as the run knows.
func (s *limited) kind() recordKind {
	if s.noChassis.Load() {
		return allocationRecords
	}
	return chassisRecords
}

// kindOf returns which record of a name this user may write, as far as the run knows.
func (s *limited) kindOf(name string) recordKind {
	if name == throttle.FreezeName && s.seesNoChassis.Load() {
		return allocationRecords
	}
	return s.kind()
}

// recordID returns the UUID of a record of a kind. UUIDs are unique over all projects, and an allocation of another project cannot even be
// read.
func (s *limited) recordID(kind recordKind, name string) string {
	if kind == allocationRecords {
		name += " " + s.c.Project()
	}
	return ironic.UUID5(recordNamespace, name)
}

func (s *limited) recordPath(kind recordKind, name string) string {
	if s.at != "" {
		return s.at
	}
	return string(kind) + "/" + s.recordID(kind, name)
}

// Where names a record, for messages.
func (s *limited) Where(name string) string {
	if kind := s.kind(); kind == allocationRecords {
		return "allocation " + s.recordID(kind, name)
	}
	return "chassis " + s.recordID(chassisRecords, name)
}

// Create creates a record. Several records may be the first of a run at the same time.
func (s *limited) Create(ctx context.Context, r throttle.Record) (created bool, err error) {
	kind := s.kind()
	created, err = s.create(ctx, kind, r)
	if kind == chassisRecords && isNoRight(err) {
		refused := err
		s.noChassis.Store(true)
		if created, err = s.create(ctx, allocationRecords, r); !isNoRight(err) {
			s.Log(ctx, slog.LevelInfo, "this user may not create a chassis, so its locks are allocations, which only users of "+
				"its project see")
			return created, err
		}
		err = refused
	}
	if isNoRight(err) {
		return false, throttle.NotAllowed(err)
	}
	return created, err
}

func (s *limited) create(ctx context.Context, kind recordKind, r throttle.Record) (created bool, err error) {
	extra, err := json.Marshal(s.extraOf(kind, r))
	if err != nil {
		return false, err
	}
	body := record{UUID: s.recordID(kind, r.Name), Extra: extra}
	if kind == allocationRecords {
		body.Class = ironic.RecordClass
	} else {
		body.Description = r.Description
	}
	err = s.c.Request(ctx, http.MethodPost, string(kind), body, nil)
	if api.IsStatus(err, http.StatusConflict, "") {
		return false, nil
	}
	return err == nil, err
}

// isNoRight reports whether the user may not write records, or this Ironic has none.
func isNoRight(err error) bool {
	return api.IsForbidden(err) || api.IsNotFound(err) || api.IsStatus(err, http.StatusMethodNotAllowed, "")
}

// Read returns a record; nil if there is none. Its age is measured by Ironic's clock, and is zero if it is unknown. A record that another
// client has changed into something else has no holder.
func (s *limited) Read(ctx context.Context, name string) (*throttle.Record, error) {
	var body record
	kind, freeze := s.kindOf(name), name == throttle.FreezeName
	if freeze && !s.seesNoChassis.Load() { // that of the whole site counts for those, too, who may only see it
		kind = chassisRecords
	}
	err := s.c.Request(ctx, http.MethodGet, s.recordPath(kind, name), nil, &body)
	switch {
	case kind != chassisRecords || !api.IsForbidden(err):
	case freeze: // whether locks may be chassis is found out by the first one
		s.seesNoChassis.Store(true)
	default: // whoever only reads has created no record that was refused
		s.noChassis.Store(true)
	}
	if kind == chassisRecords && (api.IsForbidden(err) || api.IsNotFound(err) && s.noChassis.Load()) {
		err = s.c.Request(ctx, http.MethodGet, s.recordPath(allocationRecords, name), nil, &body)
	}
	if api.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := body.content(s.c.ServerNow())
	r.Name = name
	return &r, nil
}

// content returns what a record says, without its name. now is the time of Ironic's clock.
func (body *record) content(now time.Time) throttle.Record {
	r := throttle.Record{Description: body.Description}
	var extra recordExtra
	if json.Unmarshal(body.Extra, &extra) == nil && len(extra.Holders) == 1 {
		r.From, r.Released, r.Words, r.Freeze = extra.From, extra.Released, extra.Waiting, extra.Freeze
		r.Lease = time.Duration(min(max(extra.Lease, 0), 1<<20)) * time.Second
		if ironic.IsUUID(extra.Run) {
			r.Run = extra.Run
		}
		for holder, renewals := range extra.Holders {
			r.Holder, r.Renewals = holder, renewals
		}
	}
	for _, at := range []string{body.UpdatedAt, body.CreatedAt} {
		if since, err := time.Parse(time.RFC3339, at); err == nil {
			r.Age = now.Sub(since)
			break
		}
	}
	return r
}

// Replace replaces the record of a holder.
func (s *limited) Replace(ctx context.Context, holder string, record throttle.Record) (replaced bool, err error) {
	var patch ironic.Patch
	kind := s.kindOf(record.Name)
	patch.Replace("/extra/holders/"+holder, record.Renewals)
	patch.Set("/extra", s.extraOf(kind, record))
	err = s.c.Request(ctx, http.MethodPatch, s.recordPath(kind, record.Name), patch, nil)
	if api.IsNotFound(err) || api.IsStatus(err, http.StatusBadRequest, "") {
		return false, nil
	}
	return err == nil, err
}

// Delete deletes a record. It succeeds if there is none.
func (s *limited) Delete(ctx context.Context, name string) error {
	err := s.c.Request(ctx, http.MethodDelete, s.recordPath(s.kindOf(name), name), nil, nil)
	if api.IsNotFound(err) {
		return nil
	}
	return err
}
