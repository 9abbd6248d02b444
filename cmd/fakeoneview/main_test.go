package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// start runs the program and returns the lines of its output and a function that stops it.
func start(t *testing.T, args ...string) (lines *bufio.Reader, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, args, writer)
		_ = writer.CloseWithError(io.EOF) // ends the test's read if the run ends early
		ended <- err
	}()
	return bufio.NewReader(reader), func() error {
		cancel()
		return <-ended
	}
}

func line(t *testing.T, lines *bufio.Reader) string {
	t.Helper()
	text, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("output: %v", err)
	}
	return strings.TrimSpace(text)
}

// ask sends a request to the appliance and returns the status and the JSON of the answer.
func ask(t *testing.T, client *http.Client, method, url, token, body string) (int, map[string]any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-API-Version", "1200")
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("auth", token)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var document map[string]any
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, document
}

func TestRun_servesAnApplianceUntilStopped(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		tls  bool
	}{
		{"TLS", nil, true},
		{"TLS with a CA file", []string{"-ca-file", filepath.Join(t.TempDir(), "ca.pem")}, true},
		{"plain", []string{"-insecure-http"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			lines, stop := start(t, append(tt.args, "-hardware", "3", "-rack", "1", "-taken", "2", "-username", "ironic", "-password",
				"secret", "-api-version", "2000")...)
			url, client, caFile := line(t, lines), http.DefaultClient, ""
			if strings.HasPrefix(url, "https://") != tt.tls {
				t.Errorf("URL = %s", url)
			}
			if tt.tls {
				caFile = line(t, lines)
				client = trusting(t, caFile)
			}
			if _, version := ask(t, client, http.MethodGet, url+"/rest/version", "", ""); version["currentVersion"] != 2000.0 {
				t.Errorf("version = %v", version)
			}
			if status, _ := ask(t, client, http.MethodPost, url+"/rest/login-sessions", "",
				`{"userName": "ironic", "password": "wrong"}`); status != http.StatusBadRequest {
				t.Errorf("wrong login = %d, want 400", status)
			}
			_, login := ask(t, client, http.MethodPost, url+"/rest/login-sessions", "", `{"userName": "ironic", "password": "secret"}`)
			token, _ := login["sessionID"].(string)
			if _, list := ask(t, client, http.MethodGet, url+"/rest/server-hardware", token, ""); list["total"] != 4.0 {
				t.Errorf("hardware = %v, want four", list["total"])
			}
			if _, list := ask(t, client, http.MethodGet, url+"/rest/server-profiles", token, ""); list["total"] != 2.0 {
				t.Errorf("profiles = %v, want two", list["total"])
			}
			client.CloseIdleConnections()
			if err := stop(); err != nil {
				t.Errorf("run ended with %v, want nil", err)
			}
			if _, err := os.Stat(caFile); caFile != "" && tt.args == nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the CA file %s is left: %v", caFile, err)
			}
		})
	}
}

func trusting(t *testing.T, caFile string) *http.Client {
	t.Helper()
	pem, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatalf("%s holds no certificate", caFile)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

func TestRun_refusesWrongArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-no-such-flag"}, {"stray"}, {"-hardware", "-1"}, {"-api-version", "120"}, {"-listen", "nowhere"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("run accepted %v", args)
		}
	}
}
