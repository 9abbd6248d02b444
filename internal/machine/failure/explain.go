// Package failure has the error of an operation, and turns errors into messages: the fact, what to do next, and Ironic's own words. Each
// error carries its advice from where it is made; this package has the advice for answers of Ironic and Keystone that any request can get.
package failure

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Explain turns an error into a diagnostic: what failed, what to do next, and Ironic's words. doing is an infinitive with its object, such
// as "deploy node rack1-01".
func Explain(doing string, err error) (summary, detail string) {
	if !IsUnwatched(err) && api.IsInterrupted(err) {
		queued, down := As(err, KindQueued), As(err, KindDown)
		switch {
		case queued != nil:
			return "Could not " + doing, stoppedInQueue(queued) + " Nothing was started on it. Apply again."
		case down != nil:
			return "Could not " + doing, stoppedWhileDown(down.Node) + " Apply again to switch it on."
		}
		return "Could not " + doing, "The run was interrupted. Ironic continues the operations that were started; the next apply " +
			"continues from there."
	}
	return explain(doing, err, Advise(err))
}

// ExplainAction is Explain for an operation that an action or a command of metal does: no later apply repeats it. node is as last seen; nil
// if it could not be read. left says what it has not done and how that is done, in sentences; "" if nothing is left half done.
func ExplainAction(doing string, node *ironic.Node, err error, left string) (summary, detail string) {
	if !IsUnwatched(err) && api.IsInterrupted(err) {
		summary = "Could not " + doing
		queued, down := As(err, KindQueued), As(err, KindDown)
		switch {
		case node == nil:
			return summary, "The run was interrupted. Nothing was started."
		case queued != nil:
			return summary, stoppedInQueue(queued) + " " + cmp.Or(left, "Nothing was started on it.")
		case down != nil:
			return summary, stoppedWhileDown(node) + " No apply switches it on: use metal_power with action = \"on\", or metal power on."
		}
		if !states.IsInProgress(node) {
			next := cmp.Or(left, "No apply repeats the operation: look at the node, and try again if you need it.")
			return summary, fmt.Sprintf("The run was interrupted. Nothing was in progress when Ironic was last asked (%s). %s",
				states.StatusOf(node), next)
		}
		next := cmp.Or(left, "No apply repeats the operation: when what was started has ended, try again if you need it.")
		return summary, fmt.Sprintf("The run was interrupted. Ironic goes on with what was started (%s). %s", states.StatusOf(node), next)
	}
	advice := Advise(err)
	if e := fault.First(err, func(e *Error) bool { return e.Action != "" }); e != nil {
		advice = e.Action
	}
	summary, detail = explain(doing, err, advice)
	return summary, strings.TrimSuffix(detail+"\n\n"+left, "\n\n")
}

// stoppedInQueue says that the run was stopped before it started what a node waited for.
func stoppedInQueue(queued *Error) string {
	what := cmp.Or(queued.Waits, "a slot of the provisioning limit")
	return fmt.Sprintf("The run was interrupted while node %s waited for %s.", ironic.NodeLabel(queued.Node), what)
}

// stoppedWhileDown says that the run was stopped between the two halves of a restart.
func stoppedWhileDown(node *ironic.Node) string {
	return fmt.Sprintf("The run was interrupted while node %s was being restarted: it is off, or shuts down, and was not switched "+
		"on again.", ironic.NodeLabel(node))
}

func explain(doing string, err error, advice string) (summary, detail string) {
	summary = "Could not " + doing
	if IsUnwatched(err) {
		summary = "Unfinished: " + doing
	}
	if e := fault.First(err, func(e *Error) bool { return e.Title != "" }); e != nil {
		summary = e.Title
	}
	fact, words := split(err)
	hint := ""
	if e := fault.First(err, func(e *Error) bool { return e.Hint != "" }); e != nil {
		hint = e.Hint
	}
	paragraphs := []string{fact, advice, hint, words}
	if e := fault.First(err, func(e *Error) bool { return e.Why != nil }); e != nil {
		paragraphs = []string{fact + "\n" + e.Why.Meaning + "\n" + e.Why.Next, words, lookedUp(err), advice, hint}
	} else {
		paragraphs = append(paragraphs, lookedUp(err))
	}
	var status *api.StatusError
	if errors.As(err, &status) && status.RequestID != "" && status.Status >= http.StatusInternalServerError && !api.IsForbidden(err) {
		paragraphs = append(paragraphs, "Find the request in Ironic's log by its ID, "+status.RequestID+".")
	}
	return summary, strings.Join(slices.DeleteFunc(paragraphs, func(p string) bool { return p == "" }), "\n\n")
}

// lookedUp lists what was looked up about the cause of a failure; "" if nothing was.
func lookedUp(err error) string {
	e := fault.First(err, func(e *Error) bool { return len(e.Facts) > 0 })
	if e == nil {
		return ""
	}
	return "Looked up:\n- " + strings.Join(e.Facts, "\n- ")
}

// split returns what the provider says of an error, and Ironic's words, each as a sentence or "". It does not split an error to which
// wrapping has added text.
func split(err error) (fact, words string) {
	var status *api.StatusError
	var e *Error
	switch {
	case errors.As(err, &status) && err.Error() == status.Error() && !status.Foreign && !status.Ours && status.Message != "":
		return "", "Ironic's answer: " + Ended(status.Error())
	case errors.As(err, &e) && err.Error() == e.Error() && e.Words != "":
		from := "Ironic's last_error"
		if e.Why != nil {
			from += " (reason " + e.Why.ID + ")"
		}
		return Sentence(errors.New(e.Fact)), from + ": " + Ended(e.Words)
	}
	return Sentence(err), ""
}

// Advise returns what to do about an error, or "" if the error's own text says enough.
func Advise(err error) string {
	var redirect *rest.RedirectError
	var connect *api.ConnectError
	var status *api.StatusError
	below := fault.First(err, func(e *fault.Error) bool { return e.Advice != "" })
	switch e := fault.First(err, func(e *Error) bool { return e.Advice != "" }); {
	case errors.As(err, &redirect): // it says what to do
		return ""
	case e != nil:
		return e.Advice
	case below != nil:
		return below.Advice
	case errors.As(err, &connect):
		return adviseConnection(connect)
	case errors.As(err, &status):
		return adviseStatus(status)
	}
	return adviseLoss(err, "Ironic", endpointSetting)
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
	if feature := fault.AboutOf[api.TooOld](err, api.KindVersion).Feature; feature != "" && strings.HasPrefix(err.Error(), feature) {
		return !strings.Contains(feature, " ")
	}
	first, _, _ := strings.Cut(err.Error(), " ")
	return strings.Contains(first, "_")
}
