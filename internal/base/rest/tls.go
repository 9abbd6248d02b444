package rest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"
)

// maxConnections is the maximum number of connections of a process to a server. Ironic's standalone API has a listen backlog of 5
// and answers about a hundred requests a second, regardless of the number of connections (reference/ironic.md#connections).
const maxConnections = 8

// TLS are the TLS settings of connections. Server certificates are verified unless Insecure is set.
type TLS struct {
	CACertFile                    string // PEM file of the authority that signed the server's certificate; empty: the system's authorities
	ClientCertFile, ClientKeyFile string // PEM files; empty: no client certificate
	Insecure                      bool

	Called func(setting string) string // returns the user's name of a setting, such as cacert_file; nil: the given name
}

// Transport reads the files and returns a transport, or an error that names the wrong setting.
func (t TLS) Transport() (*http.Transport, error) {
	called := t.Called
	if called == nil {
		called = func(setting string) string { return setting }
	}
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: t.Insecure,
	} //nolint:gosec // the user has chosen this explicitly
	if t.CACertFile != "" {
		pem, err := os.ReadFile(t.CACertFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", called("cacert_file"), err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s contains no PEM certificate", called("cacert_file"), t.CACertFile)
		}
	}
	if t.ClientCertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.ClientCertFile, t.ClientKeyFile)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", called("client_cert_file"), called("client_key_file"), err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return newTransport(config), nil
}

// newTransport returns a transport with TLS settings. It sets no time-out for answers; http.Client.Timeout does.
func newTransport(config *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: 15 * time.Second,
		MaxConnsPerHost:     maxConnections,
		MaxIdleConnsPerHost: maxConnections,
		IdleConnTimeout:     60 * time.Second,
		ForceAttemptHTTP2:   true,
	}
}
