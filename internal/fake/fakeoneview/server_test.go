package fakeoneview_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

func TestServer_logsRequests(t *testing.T) {
	t.Parallel()
	fake, a, fleet, _ := withProfile(t)
	if got := fake.Count(http.MethodPost, postProfiles); got != 1 {
		t.Errorf("%d profiles were posted, want 1", got)
	}
	if got := fake.Count("", "^/rest/server-hardware"); got != 0 {
		t.Errorf("%d requests for hardware, want none", got)
	}
	fake.ResetRequests()
	a.get(fleet.Hardware[0] + "?view=x")
	all := fake.Requests()
	if len(all) != 1 || all[0].Method != http.MethodGet || all[0].Path != fleet.Hardware[0] || all[0].Query != "view=x" ||
		all[0].Status != http.StatusOK {
		t.Errorf("log = %+v", all)
	}
}

// serveTLS serves a fake with a certificate of the authority.
func serveTLS(t *testing.T, fake *fakeoneview.Server, authority *fakehttp.Authority) *httptest.Server {
	t.Helper()
	config, err := authority.ServerConfig("127.0.0.1", "oneview.example.com")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(fake)
	server.TLS = config
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // discard errors of clients that do not trust the certificate
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func newAuthority(t *testing.T) *fakehttp.Authority {
	t.Helper()
	authority, err := fakehttp.New()
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// trusting returns a client that trusts only an authority.
func trusting(t *testing.T, authority *fakehttp.Authority) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority.PEM()) {
		t.Fatal("the PEM of the authority holds no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func fetch(t *testing.T, client *http.Client, url string) (int, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}

func TestServer_onlyItsAuthorityIsTrusted(t *testing.T) {
	t.Parallel()
	right, wrong := newAuthority(t), newAuthority(t)
	server := serveTLS(t, &fakeoneview.Server{}, right)
	if status, err := fetch(t, trusting(t, right), server.URL+"/rest/version"); err != nil || status != http.StatusOK {
		t.Errorf("with the right CA: %d, %v", status, err)
	}
	var unknown x509.UnknownAuthorityError
	if _, err := fetch(t, trusting(t, wrong), server.URL+"/rest/version"); !errors.As(err, &unknown) {
		t.Errorf("with the wrong CA: %v, want an unknown authority", err)
	}
	var name x509.HostnameError
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fetch(t, trusting(t, right), "https://localhost:"+port+"/rest/version"); !errors.As(err, &name) {
		t.Errorf("with another name: %v, want a wrong host name", err)
	}
}

func TestServer_dropBreaksASocket(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	authority := newAuthority(t)
	server := serveTLS(t, &fake, authority)
	fake.Inject(fakeoneview.Fault{Path: "version", Count: 2, Effect: fakeoneview.Drop()}) // net/http tries a GET twice
	if status, err := fetch(t, trusting(t, authority), server.URL+"/rest/version"); err == nil {
		t.Errorf("answer = %d, want a broken connection", status)
	}
}

func TestServer_parallelClientsAndOtherUser(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	fleet := fake.AddBlades(8)
	fake.Inject(fakeoneview.Fault{
		Method: http.MethodPost, Path: postProfiles, Nth: 3, Count: fakeoneview.Always,
		Effect: fakeoneview.BeforeRunning(func() { fake.TakeHardware(fleet.Hardware[7]) }),
	})
	var all sync.WaitGroup
	for i := range 4 {
		a := login(t, &fake)
		a.ifMatch = "*"
		all.Go(func() {
			for n := range 10 {
				uri := fleet.Hardware[(i+n)%7]
				task := a.await(a.begin(http.MethodPost, profilesPath, a.newProfile(fleet.TemplateURI, uri, "run-"+string(rune('a'+i)))))
				if mine, _ := task.member("associatedResource", "resourceUri").(string); mine != "" {
					a.await(a.begin(http.MethodDelete, mine, nil)).wantTask(t, fakeoneview.TaskCompleted, "")
				}
				fake.ReleaseHardware(fleet.Hardware[7])
			}
		})
	}
	all.Wait()
	fake.ReleaseHardware(fleet.Hardware[7])
	if got := fake.Profiles(); len(got) != 0 {
		t.Errorf("profiles = %+v", got)
	}
	if harm := fake.Harm(); len(harm) != 0 {
		t.Errorf("harm = %q", harm)
	}
}
