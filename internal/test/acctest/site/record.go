package site

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// RecordVariable is the variable with the folder that receives the exchanges of tests with a real Ironic, a file for each site of a test.
// internal/test/replay sends them to the fake.
const RecordVariable = "METAL_ACC_RECORD"

// Exchange is a request to an Ironic, and its answer. A file of RecordVariable has a line for each, in the order in which they ended.
type Exchange struct {
	Began   int    // how many exchanges had ended when it began
	Method  string `json:",omitempty"`
	URL     string `json:",omitempty"` // path and query
	Version string `json:",omitempty"` // of the API
	Body    string `json:",omitempty"`
	Status  int    `json:",omitempty"`
	Newest  string `json:",omitempty"` // the newest version of the API
	Answer  string `json:",omitempty"`
}

// record puts a recorder before the site's Ironic if RecordVariable asks for one.
func (s *Site) record(t testing.TB) {
	t.Helper()
	folder := os.Getenv(RecordVariable)
	if folder == "" {
		return
	}
	target, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(folder, strings.ReplaceAll(t.Name(), "/", "-")+"."+s.unique+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	ended, lines := 0, json.NewEncoder(file)
	ironic := httputil.NewSingleHostReverseProxy(target)
	ironic.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) } // the client has gone
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		e := Exchange{Method: r.Method, URL: r.URL.RequestURI(), Body: string(body)}
		e.Version = r.Header.Get("X-OpenStack-Ironic-API-Version")
		mu.Lock()
		e.Began = ended
		mu.Unlock()
		r = r.WithContext(context.WithoutCancel(r.Context())) // what a client sends and does not wait for is recorded, too
		r.Header.Del("Accept-Encoding")
		answer := httptest.NewRecorder()
		ironic.ServeHTTP(answer, r)
		e.Status, e.Answer = answer.Code, answer.Body.String()
		e.Newest = answer.Header().Get("X-OpenStack-Ironic-API-Maximum-Version")
		mu.Lock()
		ended++
		err = lines.Encode(e)
		mu.Unlock()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		for key, values := range answer.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // fails only if the client has gone
	}))
	t.Cleanup(func() {
		server.Close()
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	s.Endpoint = server.URL
}
