package terraformtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
)

// Process is what a command runs in that a test kills, as kill -9 ends a CLI and its providers: no further request leaves it, and the state
// file has what calls had returned before.
type Process struct {
	once    sync.Once
	dead    chan struct{}
	sockets *http.Transport
}

// NewProcess returns a process for one command.
func NewProcess() *Process {
	anyServer := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // fakes with certificates of their own
	return &Process{dead: make(chan struct{}), sockets: &http.Transport{TLSClientConfig: anyServer}}
}

// Kill ends the process.
func (p *Process) Kill() { p.once.Do(func() { close(p.dead) }) }

// isDead reports whether the process was killed. Nil stands for a process that the test does not kill.
func (p *Process) isDead() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

var errKilled = errors.New("the process was killed")

// RoundTrip sends a request of a provider, unless the process is dead.
func (p *Process) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.isDead() {
		return nil, errKilled
	}
	return p.sockets.RoundTrip(r)
}

// over returns the transport of the process's providers; nil: sockets of their own.
func (p *Process) over() http.RoundTripper {
	if p == nil {
		return nil
	}
	return p
}

// lives returns a context that ends with the process.
func (p *Process) lives(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	if p != nil {
		go func() {
			select {
			case <-p.dead:
				end()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, end
}

// await makes a call. It returns false if the process is killed before the call returns.
func await[Req, Resp any](ctx context.Context, p *Process, method func(context.Context, Req) (Resp, error),
	req Req,
) (resp Resp, err error, lives bool) {
	if p == nil {
		resp, err = guarded(ctx, method, req)
		return resp, err, true
	}
	type answer struct {
		resp Resp
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		resp, err := guarded(ctx, method, req)
		answered <- answer{resp, err}
	}()
	select {
	case <-p.dead:
		return resp, nil, false
	case a := <-answered:
		if p.isDead() {
			return resp, nil, false
		}
		return a.resp, a.err, true
	}
}

// guarded makes a call. A panic is an error, as the end of a provider's process is one for Terraform.
func guarded[Req, Resp any](ctx context.Context, method func(context.Context, Req) (Resp, error), req Req) (resp Resp, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the provider panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return method(ctx, req)
}
