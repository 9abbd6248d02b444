package ipmi

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
)

// strike runs a command unless a fault hits it, and logs it. It returns nil if there is no answer.
func (s *Server) strike(ctx context.Context, name string, data []byte, run func() (completion, []byte)) *result {
	path := "/ipmi/" + s.BMC.Name() + "/" + name
	hit, struck := s.Fake.Strike(Method, path)
	done, code := &result{}, -1
	switch {
	case struck && hit.Delay > 0:
		select {
		case <-time.After(hit.Delay):
			done.code, done.data = run()
		case <-ctx.Done():
			done = nil
		}
	case struck && hit.Accept: // done is what a command without an answer of its own returns
	case struck && (hit.Status == 0 || hit.Hang):
		done = nil
	case struck:
		done.code = completion(hit.Status) //nolint:gosec // one byte
	default:
		done.code, done.data = run()
	}
	if done != nil && done.code == silent {
		done = nil
	}
	if done != nil {
		code = int(done.code)
	}
	s.Fake.Log(fakehttp.Request{Time: time.Now(), Method: Method, Path: path, Status: code, Body: hex.EncodeToString(data)})
	return done
}

// result is how a command ended.
type result struct {
	code completion
	data []byte
}
