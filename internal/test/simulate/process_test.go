package simulate_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// process is a provider's process.
type process struct {
	*line
	server *provider.Server
	ctx    context.Context //nolint:containedctx // ends with the process, or when it is asked to stop
	stop   context.CancelFunc
	log    *lockedBuffer // nil: it writes no log
	broke  atomic.Bool   // an error says something else than that a machine was not started
}

// withoutEnd is a context that does not end, so that a request that has arrived is executed.
type withoutEnd struct{ context.Context } //nolint:containedctx // it is one

// Done returns nil: the context does not end.
func (withoutEnd) Done() <-chan struct{} { return nil }

// Err returns nil: the context has not ended.
func (withoutEnd) Err() error { return nil }

// lockedBuffer is a buffer that several goroutines write to.
type lockedBuffer struct {
	lock chan struct{}
	text bytes.Buffer
}

func newLockedBuffer() *lockedBuffer { return &lockedBuffer{lock: make(chan struct{}, 1)} }

// Write adds text.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.lock <- struct{}{}
	defer func() { <-b.lock }()
	return b.text.Write(p)
}

// start starts a process and configures the provider with a provider block.
func (s *site) start(t *testing.T, run string, block object, killAt int, after, logs bool) *process {
	t.Helper()
	p := &process{line: &line{site: s, run: run, dead: make(chan struct{}), killAt: killAt, after: after}}
	p.server = provider.NewServerOver("test", p.line)
	p.ctx, p.stop = context.WithCancel(t.Context())
	if logs {
		p.log = newLockedBuffer()
		p.ctx = tflogtest.RootLogger(p.ctx, p.log)
	}
	of := schemas()[blockName]
	settings := object{"endpoint": "http://ironic.test", "poll_interval": "10s"}
	for name, value := range block {
		settings[name] = value
	}
	value := valueOf(of.kind, settings, nil)
	s.played.addValue(blockPrefix, value, true)
	config := encode(of.kind, value)
	resp, err := p.server.ConfigureProvider(p.ctx, &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.12.0", Config: config})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatalf("configure: %v %s", err, describe(resp.Diagnostics))
	}
	return p
}

// close ends the process, and reports secrets in its log.
func (p *process) close() {
	p.end()
	p.stop()
	if p.log != nil {
		p.log.lock <- struct{}{}
		p.keepsSecrets("the log", p.log.text.String())
		<-p.log.lock
	}
}

// rpc makes a call. It returns errKilled if the process is killed before it returns.
func rpc[Req, Resp any](p *process, call func(context.Context, Req) (Resp, error), req Req) (resp Resp, err error) {
	type answer struct {
		resp Resp
		err  error
	}
	if p.isDead() {
		return resp, errKilled
	}
	answered := make(chan answer, 1)
	go func() {
		resp, err := call(p.ctx, req)
		answered <- answer{resp, err}
	}()
	select {
	case <-p.dead:
		p.stop()
		return resp, errKilled
	case a := <-answered:
		if p.isDead() {
			p.stop()
			return resp, errKilled
		}
		return a.resp, a.err
	}
}

// said checks diagnostics, and reports whether there is an error among them.
func (p *process) said(address string, diagnostics []*tfprotov6.Diagnostic) (failed bool) {
	for _, d := range diagnostics {
		p.keepsSecrets("a diagnostic of "+address, d.Summary+d.Detail)
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			failed = true
			if d.Summary != "Machine was not started" {
				p.broke.Store(true)
			}
			if strings.Contains(d.Summary+" "+d.Detail, "Could not :") {
				p.site.broken("%s: an error does not say what failed: %s", p.run, d.Detail)
			}
			p.site.tell("%s: %s: error: %s: %s", p.run, address, d.Summary, d.Detail)
		} else {
			p.site.tell("%s: %s: warning: %s", p.run, address, d.Summary)
			if d.Summary == "Allocation is not kept" { // the next plan makes another one
				p.site.released.Store(true)
			}
		}
	}
	return failed
}

// keepsSecrets reports a secret in a text of the provider.
func (p *process) keepsSecrets(where, text string) {
	for _, secret := range p.site.secrets {
		if strings.Contains(text, secret) {
			p.site.broken("%s: %s contains the secret %s", p.run, where, secret)
		}
	}
}

// decode decodes a state that the provider has returned.
func (p *process) decode(address string, of kind, value *tfprotov6.DynamicValue, private []byte) cty.Value {
	if value == nil {
		return cty.NullVal(of.kind)
	}
	p.keepsSecrets("the state of "+address, string(value.MsgPack))
	p.keepsSecrets("the private state of "+address, string(private))
	v, err := decode(of.kind, value)
	if err != nil {
		p.site.broken("%s: %s: %v", p.run, address, err)
		return cty.NullVal(of.kind)
	}
	return v
}

// describe prints diagnostics.
func describe(diagnostics []*tfprotov6.Diagnostic) (text string) {
	for _, d := range diagnostics {
		text += fmt.Sprintf("%s: %s\n", d.Summary, d.Detail)
	}
	return text
}
