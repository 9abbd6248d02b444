package fakeironic

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// Rejection replaces the answer to a request: the client sees Status with Header and Body, or a broken connection if Status is zero.
// Unless After, Late or Fails is set, the request has no effect. They work for every kind of request.
type Rejection struct {
	Status int
	Header http.Header
	Body   string

	// Drop breaks the connection instead of answering.
	Drop bool

	// After lets the request take effect and replaces only its answer: it was executed, and its answer is lost.
	After bool

	// Late lets the request take effect that much later, as behind a proxy that has answered 504
	// meanwhile. What the server would answer then is lost.
	Late time.Duration

	// Fails lets the server accept a request for a change of a node, answer as for a success, and then do nothing but write this text to
	// last_error, after one StepTime. The node is locked until then, and neither its states nor their times change. Status is the answer;
	// zero means 202.
	Fails string
}

// afterRejection schedules what becomes of a request after its answer.
func (s *Server) afterRejection(with *Rejection, r *http.Request, body []byte) {
	if with.Late == 0 && with.Fails == "" {
		return
	}
	defer s.lock()()
	if with.Late > 0 {
		later := r.Clone(context.WithoutCancel(r.Context()))
		s.after(with.Late, func() { s.serve(later, body) })
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) < 3 || parts[1] != "nodes" {
		return
	}
	if n := s.find(parts[2]); n != nil {
		s.changeLater(n, func() string { return with.Fails })
	}
}

// reply turns the rejection into the answer that the client sees.
func (r *Rejection) reply() reply {
	status := r.Status
	if status == 0 && r.Fails != "" {
		status = http.StatusAccepted
	}
	if r.Drop || status == 0 {
		return reply{drop: true}
	}
	header := r.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return reply{status: status, header: header, body: []byte(r.Body)}
}
