package ironic

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// Bounds of the one retry policy: at most 15 seconds of waiting, then the error is the caller's.
const (
	retries      = 6
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// retry is the one retry policy, installed as gophercloud's RetryFunc: nil means "send it again". What may be sent again:
// what Ironic refused before it did anything (a locked node, 429, 503, conductor out of reach), and what got lost, if
// asking twice does no harm. Of a lost POST or verb the caller finds out first whether it had happened.
func retry(ctx context.Context, method, url string, _ *gophercloud.RequestOpts, err error, count uint) error {
	if count >= retries || !retryable(method, url, err) {
		return err
	}
	backoff := min(firstBackoff<<(count-1), maxBackoff)
	backoff += rand.N(backoff/4 + 1) //nolint:gosec // jitter
	return sleep(ctx, backoff)
}

func retryable(method, url string, err error) bool {
	repeatable := method != http.MethodPost && !strings.HasSuffix(url, provisionPath)
	var code gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &code) {
		return isConnectionLoss(err) && (repeatable || errors.Is(err, syscall.ECONNREFUSED))
	}
	if isCapacity(faultText(code.Body)) {
		return false // waited for by the loop that drives provision states, for as long as it takes
	}
	switch code.Actual {
	case http.StatusConflict:
		return method != http.MethodPost && isLocked(faultText(code.Body))
	case http.StatusTooManyRequests:
		return true
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return repeatable
	case http.StatusInternalServerError:
		return repeatable && isConductorDown(faultText(code.Body))
	}
	return false
}

// provisionPath ends the URL that verbs are put to. A verb that was obeyed may be over when it is asked for again.
const provisionPath = "/states/provision"

// Texts by which Ironic tells apart what one status code says (reference ironic-facts.md 1.3 and 10).
func isLocked(text string) bool {
	return strings.Contains(text, "is locked by host") || strings.Contains(text, "while a state transition is in progress")
}

func isCapacity(text string) bool {
	return strings.Contains(text, "concurrent action limit") || strings.Contains(text, "lack of free conductor workers")
}

func isConductorDown(text string) bool {
	return strings.Contains(text, "Unable to establish connection to") || strings.Contains(text, "database is locked")
}

// isConnectionLoss reports whether no complete answer arrived: refused, reset, timed out.
func isConnectionLoss(err error) bool {
	var op net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPIPE) || (errors.As(err, &op) && op.Timeout())
}

// sleep waits for d, or returns ctx's error as soon as that ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// answerGrace is how long a run that is interrupted waits for the answer to what it has asked for.
const answerGrace = 5 * time.Second

// outlast returns a context that ends a while after ctx does. Nobody would record what was made, or give back a lock that
// was taken, by a request that was broken off after Ironic had obeyed it.
func outlast(ctx context.Context) (later context.Context, stop func()) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(answerGrace, cancel) })
	return later, func() {
		forget()
		cancel()
	}
}
