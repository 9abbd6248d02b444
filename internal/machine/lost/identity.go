package lost

import (
	"context"
	"net/http"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// A site has an identity: a random UUID in a chassis, which can be created only once under its own UUID. The database keeps it, so another
// database has another one. A user without the right to chassis sees none.
const (
	identityPath  = "chassis/"
	identityKey   = "identity"
	identityAbout = "terraform-provider-metal: identity of this Ironic, by which states recognise it"
)

// identityRecord is the UUID of the chassis. All versions of this provider must use the same.
var identityRecord = ironic.UUID5("2e9c9d9e-6f0a-4a9e-9d0e-6d6574616c21", "identity of the site")

// identity is that of a site, asked for once in a run.
type identity struct {
	asking chan struct{} // holds a value while a caller asks
	known  bool
	id     string // "": none, or it is not visible
	hidden bool   // the user may not see it
}

// Identity returns the identity of a site; "" if there is none, or if this user cannot see it. It makes one if that is asked for.
func Identity(ctx context.Context, site *machine.Site, makes bool) string {
	i := &ledgerOf(site).identity
	i.asking <- struct{}{}
	defer func() { <-i.asking }()
	i.ask(ctx, site.Ironic)
	if makes && i.id == "" && !i.hidden {
		body := map[string]any{
			"uuid": identityRecord, "description": identityAbout, "extra": map[string]any{identityKey: ironic.NewUUID()},
		}
		err := site.Ironic.Request(ctx, http.MethodPost, "chassis", body, nil)
		if err != nil && !api.IsStatus(err, http.StatusConflict, "") { // where the answer is lost, too, the next run reads it
			i.hidden = true
		} else {
			i.read(ctx, site.Ironic)
		}
	}
	return i.id
}

// ask reads the identity, unless it is known.
func (i *identity) ask(ctx context.Context, from *ironic.Client) {
	if !i.known {
		i.read(ctx, from)
		i.known = ctx.Err() == nil
	}
}

func (i *identity) read(ctx context.Context, from *ironic.Client) {
	var body struct {
		Extra map[string]any `json:"extra"`
	}
	err := from.Request(ctx, http.MethodGet, identityPath+identityRecord, nil, &body)
	i.hidden = err != nil && !api.IsNotFound(err)
	i.id, _ = body.Extra[identityKey].(string)
}

// Verdict says whether a site is the one that a state notes.
type Verdict int

// The verdicts.
const (
	UnknownSite Verdict = iota // the state notes none
	HiddenSite                 // the user cannot see it
	SameSite
	OtherSite
	NoSite // it has no identity
)

// judge compares the identity of the site with one that the state notes. It makes none.
func (i *identity) judge(ctx context.Context, site *machine.Site, noted string) Verdict {
	if noted == "" {
		return UnknownSite
	}
	i.asking <- struct{}{}
	defer func() { <-i.asking }()
	i.ask(ctx, site.Ironic)
	switch {
	case i.hidden:
		return HiddenSite
	case i.id == "":
		return NoSite
	case i.id != noted:
		return OtherSite
	}
	return SameSite
}

func (v Verdict) sentence() string {
	switch v {
	case SameSite:
		return "It is the Ironic that the state knows, so another client has deleted records, or restored an older backup."
	case OtherSite:
		return "It has another identity than the one that the state knows: it is another site, or its database is a new one."
	case NoSite:
		return "It has no identity, and the one that the state knows has: it is another site, or its database is empty or older."
	case HiddenSite:
		return "Whether it is the Ironic that the state knows cannot be told: its identity is a chassis, which it did not " +
			"show to this user."
	case UnknownSite:
	}
	return "Whether it is the Ironic that the state knows cannot be told: the state notes no identity, which only users who may create " +
		"chassis give to a site."
}

// Judge says in a sentence whether a site is the one that a state notes.
func Judge(ctx context.Context, site *machine.Site, noted string) string {
	return ledgerOf(site).judge(ctx, site, noted).sentence()
}

// Refusal returns the error of a plan about a resource that this run has found lost, unless it may be made anew.
func Refusal(ctx context.Context, site *machine.Site, kind, id, name string, ends bool) (refused decide.Notice, is bool) {
	l := ledgerOf(site)
	r, is := l.find(kind, id, name)
	if !is {
		return decide.Notice{}, false
	}
	verdict := l.judge(ctx, site, r.Site)
	if !r.isRefused(verdict) || ends && verdict == SameSite && !r.Other { // the site is the right one, and has nothing to destroy
		return decide.Notice{}, false
	}
	return l.refusal(r, site.Ironic.Address(), verdict), true
}

// Failure returns the error of an apply which finds that Ironic has lost a record.
func Failure(ctx context.Context, site *machine.Site, r Record) decide.Notice {
	Note(site, r)
	l := ledgerOf(site)
	return l.refusal(r, site.Ironic.Address(), l.judge(ctx, site, r.Site))
}

// IsSame reports whether a site is the one that a state notes.
func IsSame(ctx context.Context, site *machine.Site, noted string) bool {
	return ledgerOf(site).judge(ctx, site, noted) == SameSite
}

// MayBeMadeAnew reports whether the machine of a lost record was idle, in the site that the state knows.
func MayBeMadeAnew(ctx context.Context, site *machine.Site, r Record) bool {
	return !r.isRefused(ledgerOf(site).judge(ctx, site, r.Site))
}
