// Package failure has the error of an operation, and turns errors into messages: the fact, what to do next, and Ironic's own words. Each error
// carries its advice from where it is made; this package has the advice for answers of Ironic and Keystone that any request can get.
package failure

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// Kind says what an error is about, for code that goes on differently after it. Each is declared beside the code that makes the error.
type Kind string

// Error is the error of an operation. What it says and advises is written where it is made; Explain only puts that together.
type Error struct {
	Kind   Kind         // "" if no code asks for it
	Node   *ironic.Node // as last seen; nil if it is about none
	Goal   states.Goal  // of the walk that has ended; "" if none has
	Fact   string       // what is the case
	Words  string       // Ironic's last_error; "" if it says nothing
	Advice string       // what to do; "" if the fact says it
	Action string       // the advice if an action, which no later apply repeats, has requested the operation; "": the same
	Hint   string       // what else to check; "" if nothing
	About  any          // facts for the code that handles errors of the kind
	Err    error        // the cause; nil if there is none
}

// Error returns the fact, and Ironic's words.
func (e *Error) Error() string {
	if e.Words == "" {
		return e.Fact
	}
	return e.Fact + ": " + e.Words
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// As returns the first error of one of the given kinds in the tree of err; nil if there is none.
func As(err error, kinds ...Kind) *Error {
	return first(err, func(e *Error) bool { return slices.Contains(kinds, e.Kind) })
}

// Is reports whether err is an error of a kind, or has one as a cause.
func Is(err error, kind Kind) bool { return As(err, kind) != nil }

// AboutOf returns About of the first error of a kind in the tree of err; the zero value if there is none.
func AboutOf[T any](err error, kind Kind) (about T) {
	if e := As(err, kind); e != nil {
		about, _ = e.About.(T)
	}
	return about
}

// first returns the first Error in the tree of err for which a condition holds; nil if there is none.
func first(err error, holds func(*Error) bool) *Error {
	if e, is := err.(*Error); is && holds(e) { //nolint:errorlint // it is one node of the tree
		return e
	}
	switch x := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return first(x.Unwrap(), holds)
	case interface{ Unwrap() []error }:
		for _, cause := range x.Unwrap() {
			if e := first(cause, holds); e != nil {
				return e
			}
		}
	}
	return nil
}

// Explain turns an error into a diagnostic: what failed, what to do next, and Ironic's words. doing is an infinitive with its object, such
// as "deploy node rack1-01".
func Explain(doing string, err error) (summary, detail string) {
	if !IsUnwatched(err) && api.IsInterrupted(err) {
		if queued := As(err, KindQueued); queued != nil {
			return "Could not " + doing, stoppedInQueue(queued.Node) + " Apply again."
		}
		return "Could not " + doing, "The run was interrupted. Ironic continues the operations that were started; the next apply continues from there."
	}
	return explain(doing, err, advise(err))
}

// ExplainAction is Explain for an operation that an action has requested: no later apply repeats it. node is as last seen; nil if it could not be
// read.
func ExplainAction(doing string, node *ironic.Node, err error) (summary, detail string) {
	if !IsUnwatched(err) && api.IsInterrupted(err) {
		summary = "Could not " + doing
		queued := As(err, KindQueued)
		switch {
		case node == nil:
			return summary, "The run was interrupted. Nothing was started."
		case queued != nil:
			return summary, stoppedInQueue(node)
		}
		return summary, fmt.Sprintf("The run was interrupted. Ironic goes on with what was started (%s). No apply repeats an action: when the operation has ended, invoke it again if you need it.", states.StatusOf(node))
	}
	advice := advise(err)
	if e := first(err, func(e *Error) bool { return e.Action != "" }); e != nil {
		advice = e.Action
	}
	return explain(doing, err, advice)
}

// stoppedInQueue says that the run was stopped before it started anything on a node.
func stoppedInQueue(node *ironic.Node) string {
	return fmt.Sprintf("The run was interrupted while node %s waited for a slot of the provisioning limit. Nothing was started on it.", ironic.NodeLabel(node))
}

func explain(doing string, err error, advice string) (summary, detail string) {
	summary = "Could not " + doing
	if IsUnwatched(err) {
		summary = "Unfinished: " + doing
	}
	fact, words := split(err)
	hint := ""
	if e := first(err, func(e *Error) bool { return e.Hint != "" }); e != nil {
		hint = e.Hint
	}
	paragraphs := []string{fact, advice, hint, words}
	var status *api.StatusError
	if errors.As(err, &status) && status.RequestID != "" && status.Status >= http.StatusInternalServerError && !api.IsForbidden(err) {
		paragraphs = append(paragraphs, "Find the request in Ironic's log by its ID, "+status.RequestID+".")
	}
	return summary, strings.Join(slices.DeleteFunc(paragraphs, func(p string) bool { return p == "" }), "\n\n")
}

// split returns what the provider says of an error, and Ironic's words, each as a sentence or "". It does not split an error to which
// wrapping has added text.
func split(err error) (fact, words string) {
	var status *api.StatusError
	var e *Error
	switch {
	case errors.As(err, &status) && err.Error() == status.Error() && !status.Foreign && status.Message != "":
		return "", "Ironic's answer: " + Ended(status.Error())
	case errors.As(err, &e) && err.Error() == e.Error() && e.Words != "":
		return Sentence(errors.New(e.Fact)), "Ironic's last_error: " + Ended(e.Words)
	}
	return Sentence(err), ""
}

// advise returns what to do about an error, or "" if the error's own text says enough.
func advise(err error) string {
	var redirect *rest.RedirectError
	var advised interface{ Advice() string }
	switch e := first(err, func(e *Error) bool { return e.Advice != "" }); {
	case errors.As(err, &redirect): // it says what to do
		return ""
	case e != nil:
		return e.Advice
	case errors.As(err, &advised):
		return advised.Advice()
	case isAboutConnection(err):
		return adviseConnection(err)
	}
	return adviseStatus(err)
}

// Sentence formats an error as a sentence: it adds a full stop, and a capital letter unless the text begins with the name of an
// attribute.
func Sentence(err error) string {
	text := err.Error()
	if text == "" {
		return text
	}
	if !beginsWithName(err) {
		first, size := utf8.DecodeRuneInString(text)
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	return Ended(text)
}

// Ended returns a text with a full stop at its end.
func Ended(text string) string { return strings.TrimSuffix(text, ".") + "." }

func beginsWithName(err error) bool {
	var version *api.VersionError
	if errors.As(err, &version) && strings.HasPrefix(err.Error(), version.Feature) {
		return !strings.Contains(version.Feature, " ")
	}
	first, _, _ := strings.Cut(err.Error(), " ")
	return strings.Contains(first, "_")
}

// Kinds of errors of a walk.
const (
	KindFailed  Kind = "failed"   // Ironic accepted an operation and the operation failed
	KindTimeout Kind = "time-out" // the goal was not reached in time; the operation may still be in progress
	KindStopped Kind = "stopped"  // the user has stopped the run (Ctrl-C); api.IsInterrupted reports it
	KindQueued  Kind = "queued"   // as above, while the machine waited for a slot: nothing was started
	KindInvalid Kind = "invalid"  // Ironic refused to deploy a node because something is missing on it
)
