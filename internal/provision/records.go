package provision

import (
	"context"
	"net/http"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// chassis is the kind of record in Ironic that a lock needs: it can be created only once under a given UUID, nothing else depends
// on it, and it carries data.
type chassis struct {
	UUID        string      `json:"uuid"`
	Description string      `json:"description"`
	Extra       recordExtra `json:"extra"`
	CreatedAt   string      `json:"created_at,omitempty"`
	UpdatedAt   string      `json:"updated_at,omitempty"`
}

// recordExtra is extra of a record. The holder is the only key of an object: a patch that replaces this key fails if the record has another
// holder (reference/limit.md#renewing-a-lock).
type recordExtra struct {
	Holders map[string]int `json:"holders,omitempty"` // holder -> how often it has renewed the record
	From    string         `json:"from,omitempty"`
	Run     string         `json:"run,omitempty"`
}

func (s limited) extraOf(record throttle.Record) recordExtra {
	extra := recordExtra{From: record.From, Run: s.c.run}
	if record.Holder != "" {
		extra.Holders = map[string]int{record.Holder: record.Renewals}
	}
	return extra
}

// recordNamespace is the namespace of the records' UUIDs. All versions of this provider must use the same.
const recordNamespace = "2e9c9d9e-6f0a-4a9e-9d0e-6d6574616c21"

func chassisPath(name string) string { return "chassis/" + ironic.UUID5(recordNamespace, name) }

// Create creates a record.
func (s limited) Create(ctx context.Context, record throttle.Record) (created bool, err error) {
	body := chassis{UUID: ironic.UUID5(recordNamespace, record.Name), Description: record.Description, Extra: s.extraOf(record)}
	err = s.c.Request(ctx, http.MethodPost, "chassis", body, nil)
	switch {
	case ironic.IsStatus(err, http.StatusConflict, ""):
		return false, nil
	case ironic.IsForbidden(err) || ironic.IsNotFound(err) || ironic.IsStatus(err, http.StatusMethodNotAllowed, ""): // or this Ironic has none
		return false, &throttle.NotAllowedError{Err: err}
	}
	return err == nil, err
}

// Read returns a record; nil if there is none. Its age is measured by Ironic's clock, and is zero if it is unknown.
func (s limited) Read(ctx context.Context, name string) (*throttle.Record, error) {
	var body chassis
	err := s.c.Request(ctx, http.MethodGet, chassisPath(name), nil, &body)
	if ironic.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	record := throttle.Record{Name: name, Description: body.Description, From: body.Extra.From, Run: body.Extra.Run}
	for holder, renewals := range body.Extra.Holders {
		record.Holder, record.Renewals = holder, renewals
	}
	for _, at := range []string{body.UpdatedAt, body.CreatedAt} {
		if since, err := time.Parse(time.RFC3339, at); err == nil {
			record.Age = s.c.ServerNow().Sub(since)
			break
		}
	}
	return &record, nil
}

// Replace replaces the record of a holder.
func (s limited) Replace(ctx context.Context, holder string, record throttle.Record) (replaced bool, err error) {
	var patch ironic.Patch
	patch.Replace("/extra/holders/"+holder, record.Renewals)
	patch.Set("/extra", s.extraOf(record))
	err = s.c.Request(ctx, http.MethodPatch, chassisPath(record.Name), patch, nil)
	if ironic.IsNotFound(err) || ironic.IsStatus(err, http.StatusBadRequest, "") {
		return false, nil
	}
	return err == nil, err
}

// Delete deletes a record. It succeeds if there is none.
func (s limited) Delete(ctx context.Context, name string) error {
	err := s.c.Request(ctx, http.MethodDelete, chassisPath(name), nil, nil)
	if ironic.IsNotFound(err) {
		return nil
	}
	return err
}
