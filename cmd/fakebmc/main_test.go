package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestRun_servesHTTPAndHTTPSUntilStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"-machines", "2", "-ipmi", "127.0.0.1:0,127.0.0.2:0"}, writer)
		_ = writer.CloseWithError(io.EOF) // ends the test's read if the run ends early
		ended <- err
	}()
	lines := bufio.NewScanner(reader)
	next := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the output ends: %v", <-ended)
		}
		return lines.Text()
	}
	plain, secure, ca, machines := next(), next(), next(), []string{next(), next()}
	for _, host := range []string{"127.0.0.1", "127.0.0.2"} {
		if line := next(); !strings.HasPrefix(line, "ipmi://"+host+":") || len(strings.Fields(line)) != 3 {
			t.Errorf("the address of IPMI is %q", line)
		}
	} // it serves when it has written all
	certificate, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	for _, machine := range machines {
		address, login, _ := strings.Cut(machine, " ")
		path := strings.TrimPrefix(address, "redfish-virtualmedia+"+plain)
		username, password, _ := strings.Cut(login, " ")
		for _, url := range []string{plain, secure} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.SetBasicAuth(username, password)
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Errorf("GET %s: %d", url+path, response.StatusCode)
			}
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("run ended with %v, want nil", err)
	}
}

func TestRun_refusesAnUnknownFlag(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-no-such-flag"}, {"-machines", "2", "-ipmi", "127.0.0.1:0"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("run accepted %v", args)
		}
	}
}
