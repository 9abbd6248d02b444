package fakehttp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// Reply is a complete answer.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte

	// Drop breaks the connection instead of answering.
	Drop bool
}

// Write sends the answer to a client.
func (r Reply) Write(w http.ResponseWriter) {
	if r.Drop {
		panic(http.ErrAbortHandler)
	}
	for key, values := range r.Header {
		w.Header()[key] = values
	}
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.Body) // fails only if the client has gone
}

// RoundTrip lets answer answer a request without a socket, as an http.RoundTripper does.
func RoundTrip(r *http.Request, answer func(*http.Request) Reply) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	reply := answer(r)
	if r.Body != nil {
		_ = r.Body.Close()
	}
	if reply.Drop {
		return nil, syscall.ECONNRESET
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", reply.Status, http.StatusText(reply.Status)), StatusCode: reply.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: reply.Header, Body: io.NopCloser(bytes.NewReader(reply.Body)), ContentLength: int64(len(reply.Body)), Request: r,
	}, nil
}

// Content reads the body of a request. A truncated body counts as a short one.
func Content(r *http.Request) (body []byte) {
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	return body
}

// Shown copies a request, with its body, for a function that may read it.
func Shown(r *http.Request, body []byte) *http.Request {
	shown := r.Clone(r.Context())
	shown.Body = io.NopCloser(bytes.NewReader(body))
	return shown
}

// Request is one logged request.
type Request struct {
	Time   time.Time
	Method string
	Path   string
	Query  string // raw
	Status int    // 0 if the answer was dropped; of IPMI the completion code, or -1
	Body   string
}

// Journal is the log of the requests to a fake.
type Journal struct {
	mu       sync.Mutex
	requests []Request
}

// Log adds a request.
func (j *Journal) Log(r Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests = append(j.requests, r)
}

// Requests returns the log of all requests since the start or the last ResetRequests.
func (j *Journal) Requests() []Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]Request(nil), j.requests...)
}

// Count returns the number of logged requests with this method (empty: any) and a path that matches the regular expression path.
// It panics if the expression is not valid.
func (j *Journal) Count(method, path string) int {
	pattern, n := regexp.MustCompile(path), 0
	for _, r := range j.Requests() {
		if (method == "" || method == r.Method) && pattern.MatchString(r.Path) {
			n++
		}
	}
	return n
}

// ResetRequests empties the log of requests.
func (j *Journal) ResetRequests() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests = nil
}
