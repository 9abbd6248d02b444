package readiness_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/readiness"
)

// wantCause fails the test unless an error has a cause, says texts, and has advice.
func wantCause(t *testing.T, err error, cause readiness.Cause, texts ...string) {
	t.Helper()
	var failed *readiness.Error
	if !errors.As(err, &failed) {
		t.Errorf("the error is %v", err)
		return
	}
	if failed.Cause != cause || failed.Advice() == "" {
		t.Errorf("the cause is %q, want %q: %v; advice: %q", failed.Cause, cause, err, failed.Advice())
	}
	for _, text := range texts {
		if !strings.Contains(err.Error()+" "+failed.Advice(), text) {
			t.Errorf("%q does not say %q", err.Error()+" "+failed.Advice(), text)
		}
	}
}

func TestTCP(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	check := readiness.Check{TCP: listener.Addr().String()}
	if err := check.Once(t.Context()); err != nil {
		t.Errorf("a port that accepts connections is not ready: %v", err)
	}
	listener.Close()
	wantCause(t, check.Once(t.Context()), readiness.Refused, "TCP port "+check.TCP, "1 attempt, the last one: connection refused")
}

// page is a server on 127.0.0.1.
func page(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	server := page(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/large":
			fmt.Fprint(w, strings.Repeat("x", 1<<20), "late")
		case "/hangs-up":
			panic(http.ErrAbortHandler)
		default:
			fmt.Fprint(w, "all is ok")
		}
	})
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, tt := range []struct {
		path  string
		want  readiness.HTTP
		cause readiness.Cause
		says  string
	}{
		{"/ok", readiness.HTTP{}, "", ""},
		{"/ok", readiness.HTTP{Contains: "is ok"}, "", ""},
		{"/ok", readiness.HTTP{Contains: "well"}, readiness.WrongText, "the answer does not contain the text in ready_check.http.contains"},
		{"/large", readiness.HTTP{Contains: "late"}, readiness.WrongText, "the first MiB of the answer does not contain the text"},
		{"/busy", readiness.HTTP{}, readiness.WrongStatus, "HTTP status 503, wanted: 200 to 299"},
		{"/busy", readiness.HTTP{Status: []int{503}}, "", ""},
		{"/ok", readiness.HTTP{Status: []int{204, 301}}, readiness.WrongStatus, "HTTP status 200, wanted: 204, 301"},
		{"/moved", readiness.HTTP{}, readiness.WrongStatus, "The server redirects, which a ready check does not follow"},
		{"/moved", readiness.HTTP{Status: []int{302}}, "", ""},
		{"/hangs-up", readiness.HTTP{}, readiness.Broken, "the connection was closed before an answer"},
	} {
		check := tt.want
		check.URL = strings.Replace(server.URL, "http://", "http://admin:s3cret@", 1) + tt.path + "?token=hunter2#part"
		err := readiness.Check{HTTP: &check}.Once(t.Context())
		if tt.cause == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.path, err)
			}
			continue
		}
		wantCause(t, err, tt.cause, server.URL+" ", tt.says)
		if text := err.Error(); strings.Contains(text, "s3cret") || strings.Contains(text, "hunter2") || strings.Contains(text, tt.path) {
			t.Errorf("the error has a secret: %v", err)
		}
	}
}

// certificate makes a certificate for 127.0.0.1, or for a name, and the pool that trusts it.
func certificate(t *testing.T, name string, until time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: until.Add(-time.Hour), NotAfter: until, IsCA: true,
		BasicConstraintsValid: true,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if name != "" {
		template.IPAddresses, template.DNSNames = nil, []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	later, before := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	for name, tt := range map[string]struct {
		name    string
		until   time.Time
		trusted bool
		cause   readiness.Cause
		says    string
	}{
		"trusted":   {"", later, true, "", ""},
		"unknown":   {"", later, false, readiness.Untrusted, "ready_check.http.cacert_file"},
		"of others": {"other.example.com", later, true, readiness.WrongName, "for another host"},
		"expired":   {"", before, true, readiness.Expired, "is not valid now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			certificate, pool := certificate(t, tt.name, tt.until)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			t.Cleanup(server.Close)
			check := &readiness.HTTP{URL: server.URL}
			if tt.trusted {
				check.CAs = pool
			}
			err := readiness.Check{HTTP: check}.Once(t.Context())
			if tt.cause != "" {
				wantCause(t, err, tt.cause, tt.says)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	plain := page(t, func(http.ResponseWriter, *http.Request) {})
	wantCause(t, readiness.Check{HTTP: &readiness.HTTP{URL: strings.Replace(plain.URL, "http", "https", 1)}}.Once(t.Context()),
		readiness.NoTLS, "Use http://")
}

// What the network answers is told apart, with advice.
func TestErrorsOfTheNetwork(t *testing.T) {
	t.Parallel()
	for cause, err := range map[readiness.Cause]error{
		readiness.NoName:      &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "web-1", IsNotFound: true}},
		readiness.Refused:     &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		readiness.Unreachable: &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH},
		readiness.Broken:      &net.OpError{Op: "read", Err: syscall.ECONNRESET},
		readiness.Other:       errors.New("something else"),
	} {
		dial := func(context.Context, string, string) (net.Conn, error) { return nil, err }
		wantCause(t, readiness.Check{TCP: "web-1:22", Dial: dial}.Once(t.Context()), cause, "TCP port web-1:22")
		wantCause(t, readiness.Check{HTTP: &readiness.HTTP{URL: "http://web-1/"}, Dial: dial}.Once(t.Context()), cause, "http://web-1 ")
	}
	silent := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "i/o timeout", Name: "web-1", IsTimeout: true}
	}
	wantCause(t, readiness.Check{TCP: "web-1:22", Dial: silent}.Once(t.Context()), readiness.NoName, "cannot be resolved",
		"the computer that runs Terraform")
}

// machine answers at some times since the beginning.
type machine struct {
	begun time.Time
	up    func(since time.Duration) bool
	tries []time.Duration
}

func (m *machine) dial(context.Context, string, string) (net.Conn, error) {
	since := time.Since(m.begun)
	m.tries = append(m.tries, since)
	if !m.up(since) {
		return nil, syscall.ECONNREFUSED
	}
	here, there := net.Pipe()
	there.Close()
	return here, nil
}

// course is how a check in virtual time has gone.
type course struct {
	err   error
	took  time.Duration
	tries []time.Duration
	log   []string
}

func play(t *testing.T, timeout, stable time.Duration, up func(since time.Duration) bool) (c course) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &machine{begun: time.Now(), up: up}
		check := readiness.Check{TCP: "web-1:22", Timeout: timeout, StableFor: stable, Dial: m.dial}
		c.err = check.Wait(t.Context(), func(text string) { c.log = append(c.log, text) })
		c.took, c.tries = time.Since(m.begun), m.tries
	})
	return c
}

func TestWait_machineThatAnswersAfterATime(t *testing.T) {
	t.Parallel()
	c := play(t, time.Hour, 0, func(since time.Duration) bool { return since > 10*time.Minute })
	if c.err != nil || c.took < 10*time.Minute || c.took > 10*time.Minute+5*time.Second {
		t.Errorf("after %s: %v", c.took, c.err)
	}
	for i, at := range c.tries[1:] {
		pause := at - c.tries[i]
		if pause < time.Second || pause > 5*time.Second || i > 0 && i < 4 && pause <= c.tries[i]-c.tries[i-1] {
			t.Errorf("attempt %d came after %s", i+2, pause)
		}
	}
	if c.tries[0] != 0 || len(c.tries) > 125 {
		t.Errorf("%d attempts, the first after %s", len(c.tries), c.tries[0])
	}
	if len(c.log) < 19 || c.log[0] != "has a ready check: TCP port web-1:22, for at most 1h0m0s" ||
		!strings.HasPrefix(c.log[1], "is not ready after 3") ||
		!strings.HasSuffix(c.log[1], "attempts, the last one: connection refused") ||
		!strings.HasPrefix(c.log[len(c.log)-1], "is ready after 10m") {
		t.Errorf("the log has %d lines: %s", len(c.log), strings.Join(c.log, "\n"))
	}
}

func TestWait_machineThatNeverAnswers(t *testing.T) {
	t.Parallel()
	c := play(t, 15*time.Minute, 0, func(time.Duration) bool { return false })
	if wantCause(t, c.err, readiness.Refused, "within 15m0s", fmt.Sprintf("%d attempts", len(c.tries))); c.took != 15*time.Minute {
		t.Errorf("it took %s", c.took)
	}
}

// A machine that has to answer all the time is tried every second, and begins anew after each failure.
func TestWait_stableFor(t *testing.T) {
	t.Parallel()
	c := play(t, 5*time.Minute, 30*time.Second, func(since time.Duration) bool { return since < 20*time.Second || since > time.Minute })
	if c.err != nil || c.took < 90*time.Second || c.took > 96*time.Second {
		t.Errorf("after %s: %v", c.took, c.err)
	}
	if len(c.tries) < 60 || len(c.tries) > 70 {
		t.Errorf("%d attempts: %v", len(c.tries), c.tries)
	}
	flaps := play(t, 5*time.Minute, 30*time.Second, func(since time.Duration) bool { return since/(10*time.Second)%2 == 0 })
	wantCause(t, flaps.err, readiness.Unstable, "within 5m0s", "restart again and again")
	late := play(t, time.Minute, 30*time.Second, func(since time.Duration) bool { return since > 45*time.Second })
	wantCause(t, late.err, readiness.Unstable, "must do so for 30s", "Raise timeout")
}

// An attempt without an answer ends after 10 s.
func TestWait_anAttemptIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, tries := time.Now(), 0
		check := readiness.Check{
			TCP: "web-1:22", Timeout: 30 * time.Second,
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				tries++
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}
		wantCause(t, check.Wait(t.Context(), func(string) {}), readiness.Unreachable, "no answer in time", "without a proxy")
		if tries != 3 || time.Since(begun) != 30*time.Second {
			t.Errorf("%d attempts in %s", tries, time.Since(begun))
		}
	})
}

// The last attempt, for which little time is left, does not hide what came back before. The error has the time-out, also if a busy machine
// notices late that it is over.
func TestWait_theLastAttemptIsCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		check := readiness.Check{TCP: "web-1:22", Timeout: 5 * time.Second, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if tries++; tries < 3 {
				return nil, syscall.ECONNREFUSED
			}
			<-ctx.Done()
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the clock of synctest
			return nil, ctx.Err()
		}}
		wantCause(t, check.Wait(t.Context(), func(string) {}), readiness.Refused, "within 5s: 3 attempts")
	})
}

func TestWait_interrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, context.Canceled)
		defer cancel()
		m := &machine{begun: time.Now(), up: func(time.Duration) bool { return false }}
		err := readiness.Check{TCP: "web-1:22", Timeout: time.Hour, Dial: m.dial}.Wait(ctx, func(string) {})
		if !errors.Is(err, ctx.Err()) || time.Since(m.begun) != time.Minute {
			t.Errorf("after %s: %v", time.Since(m.begun), err)
		}
	})
}

// A web server in virtual time: requests go over an injected connection, as in the simulator.
func TestWait_httpOverAnInjectedConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		dial := func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				defer there.Close()
				_, _ = there.Read(make([]byte, 4096))
				status := "503 Busy"
				if time.Since(begun) > time.Minute {
					status = "200 OK"
				}
				fmt.Fprintf(there, "HTTP/1.1 %s\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", status)
			}()
			return here, nil
		}
		check := readiness.Check{HTTP: &readiness.HTTP{URL: "http://web-1/", Contains: "ok"}, Timeout: time.Hour, Dial: dial}
		if err := check.Wait(t.Context(), func(string) {}); err != nil || time.Since(begun) > 66*time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for address, valid := range map[string]bool{
		"192.0.2.1:22": true, "[2001:db8::1]:22": true, "web-1.example.com:443": true, "192.0.2.1": false, ":22": false, "web-1:": false,
		"web-1:ssh": false, "web-1:0": false,
		"web-1:65536": false, "2001:db8::1:22": false, "": false,
	} {
		err := readiness.CheckAddress(address)
		if (err == nil) != valid {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil && address != "" && strings.HasPrefix(err.Error(), strconv.Quote(address)) {
			t.Errorf("the error has the address: %v", err)
		}
	}
}
