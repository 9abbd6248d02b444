package api

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Bounds of the retry policy: after at most 15 seconds of waiting between tries the caller gets the error. A request that times out is
// repeated once, so that an Ironic that hangs is an error after two time-outs and those seconds. Later requests then fail at once: see
// silence.
const (
	Retries      = 6
	timeouts     = 1
	FirstBackoff = 500 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// firstRetries is how often a request is repeated if its connection is refused before Ironic's first answer. That takes about two seconds:
// the endpoint is probably wrong. A later request is repeated as often as after other errors, because Ironic may be restarting.
const firstRetries = 2

// retry is gophercloud's RetryFunc: nil means that the request is sent again. Before the first answer retryFirst decides, afterwards the
// function retry.
func (c *Conn) retry(ctx context.Context, method, url string, opts *gophercloud.RequestOpts, err error, count uint) error {
	if c.connected() == nil {
		return c.unread(method, url, c.retryFirst(ctx, method, url, opts, err, count))
	}
	var code gophercloud.ErrUnexpectedResponseCode
	if count == tellTries && !errors.As(err, &code) && mayRepeat(method, url, opts, err, count) && c.silenceAt(url).isYoung() {
		c.tell(ctx, c.Redact(fmt.Sprintf("%s %s was sent %d times without an answer; what came back last: %v. It is sent again, at most "+
			"%d times", method, url, count, bare(err), Retries-count)))
	}
	if err = retry(ctx, method, url, opts, err, count); IsConnectionLoss(err) && count > timeouts {
		err = fmt.Errorf("%w (the request was sent %d times)", err, count)
	}
	return c.unread(method, url, err)
}

// tellTries is the number of tries without an answer after which the log tells of a request.
const tellTries = 3

// retry is the retry policy. It repeats requests that Ironic refused before doing anything (locked node, 429, 503, unreachable conductor),
// and lost requests that are harmless to repeat. After a lock it leaves requests that reach the machine to the caller, who looks at the
// node first: what has locked it may be a deployment. The caller must check what became of a lost POST or verb.
func retry(ctx context.Context, method, url string, opts *gophercloud.RequestOpts, err error, count uint) error {
	if !mayRepeat(method, url, opts, err, count) {
		return err
	}
	wait := (&rest.Backoff{First: FirstBackoff, Max: maxBackoff, Factor: 2}).After(count)
	return rest.Sleep(ctx, wait+rand.N(wait/4+1)) //nolint:gosec // jitter
}

// mayRepeat reports whether a request is sent again that was sent count times.
func mayRepeat(method, url string, opts *gophercloud.RequestOpts, err error, count uint) bool {
	var silent *SilentError
	return count < Retries && (count <= timeouts || !isTimeout(err)) && !errors.As(err, &silent) &&
		retryable(method, url, targetOf(opts), err)
}

// retryFirst is the retry policy before Ironic's first answer. It repeats a request firstRetries times if its connection is refused. After
// it has given up one such request, it repeats no other. It leaves all other errors to the function retry.
func (c *Conn) retryFirst(ctx context.Context, method, url string, opts *gophercloud.RequestOpts, err error, count uint) error {
	if errors.Is(err, syscall.ECONNREFUSED) && (c.refused || count > firstRetries) {
		c.refused = true
		return err
	}
	if !errors.Is(err, syscall.ECONNREFUSED) && isUnsent(err) { // such as a wrong name in the endpoint
		return err
	}
	return retry(ctx, method, url, opts, err, count)
}

// retryable decides by the kind of an error. target is the verb of a request that sends one.
func retryable(method, url string, target nodes.TargetProvisionState, err error) bool {
	repeatable := (method != http.MethodPost || strings.HasSuffix(url, "/auth/tokens")) && !moves(method, url) // a token more harms nothing
	var code gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &code) {
		return isUnsent(err) || IsConnectionLoss(err) && repeatable
	}
	if IsCapacity(faultText(code.Body)) {
		return false // the loop over provision states waits for this as long as necessary
	}
	switch code.Actual {
	case http.StatusConflict:
		return method != http.MethodPost && !reaches(method, url, target) && isLocked(faultText(code.Body))
	case http.StatusTooManyRequests:
		return true
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return repeatable
	case http.StatusInternalServerError:
		return repeatable && isConductorDown(faultText(code.Body))
	case http.StatusNotFound:
		return method == http.MethodGet && groupGone.MatchString(faultText(code.Body))
	}
	return false
}

// verbPath is the end of the path of a verb.
const verbPath = "/states/provision"

// moving are the ends of the paths of requests that move a machine, by method. Ironic may have executed one to which no answer arrives, or
// may execute it later, so only the caller can find out whether to repeat it.
var moving = map[string][]string{
	http.MethodPut: {
		verbPath, "/states/power", "/states/boot_mode", "/states/secure_boot", "/management/boot_device", "/management/inject_nmi",
	},
	http.MethodDelete: {"/vmedia"},
}

// moves reports whether a PUT or DELETE request moves a machine. Of POST requests it says nothing: retryable decides about them by the
// method.
func moves(method, url string) bool {
	path, _, _ := strings.Cut(url, "?")
	return slices.ContainsFunc(moving[method], func(end string) bool { return strings.HasSuffix(path, end) })
}

// reaches reports whether a PUT or DELETE request changes a machine on which an instance runs. Ironic refuses other verbs there.
func reaches(method, url string, target nodes.TargetProvisionState) bool {
	return moves(method, url) && (!strings.HasSuffix(url, verbPath) || slices.Contains(onInstances, target))
}

// onInstances are the verbs that Ironic accepts for a machine on which an instance runs.
var onInstances = []nodes.TargetProvisionState{
	nodes.TargetDeleted, nodes.TargetRebuild, nodes.TargetRescue, nodes.TargetService,
	nodes.TargetUnrescue,
}

// targetOf returns the verb of a request; "" if it sends none.
func targetOf(opts *gophercloud.RequestOpts) nodes.TargetProvisionState {
	if opts == nil {
		return ""
	}
	body, _ := opts.JSONBody.(map[string]any)
	target, _ := body["target"].(nodes.TargetProvisionState)
	return target
}
