package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// AnswerGrace is how long an interrupted run waits for the answer to a request that changes something.
const AnswerGrace = 5 * time.Second

// Outlast is OutlastFor with AnswerGrace.
func Outlast(ctx context.Context) (later context.Context, stop func()) {
	return OutlastFor(ctx, AnswerGrace)
}

// OutlastFor returns a context that ends some time after ctx. Otherwise a request could be cancelled after the server has executed
// it, and the run could neither record what it has created nor release a lock that it has taken.
func OutlastFor(ctx context.Context, grace time.Duration) (later context.Context, stop func()) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return later, func() {
		forget()
		cancel()
	}
}

// RoundTrip sends a request through next, and bounds its answer. If the request changes something, the request and the reading of its
// answer outlast an interruption.
func RoundTrip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Context().Err() != nil {
		resp, err := next.RoundTrip(r)
		if err == nil {
			Bound(resp)
		}
		return resp, proxied(next, r, err)
	}
	later, stop := Outlast(r.Context())
	resp, err := next.RoundTrip(r.WithContext(later))
	if err != nil {
		stop()
		return resp, because(r.Context(), proxied(next, r, err))
	}
	resp.Body = &lastingBody{ReadCloser: resp.Body, ctx: r.Context(), stop: stop}
	Bound(resp)
	return resp, nil
}

// because returns ctx's error if ctx has ended, else err, so that the end of the grace period does not look like a time-out.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// lastingBody is the body of an answer that can be read as long as its request outlasts an interruption.
type lastingBody struct {
	io.ReadCloser
	ctx  context.Context //nolint:containedctx // the request's
	stop func()
}

// Read continues although the request's own context may have ended.
func (b *lastingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = because(b.ctx, err)
	}
	return n, err
}

// Close also ends the context of the grace period.
func (b *lastingBody) Close() error {
	defer b.stop()
	return b.ReadCloser.Close()
}
