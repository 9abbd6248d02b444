// Package fakehttp contains what fakes share, and what programs and tests need to serve one: answers and a log of requests, a certificate
// authority, and a server that stops with its context.
package fakehttp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Authority is a certificate authority. Every fake has its own.
type Authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// certificateTime is the validity of the certificates.
const certificateTime = 365 * 24 * time.Hour

// New creates a CA.
func New() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the CA: %w", err)
	}
	wanted := certificate("fake CA")
	wanted.IsCA, wanted.BasicConstraintsValid = true, true
	wanted.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, wanted, wanted, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the CA: %w", err)
	}
	return &Authority{key: key, cert: cert}, nil
}

func certificate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateTime),
	}
}

// PEM returns the certificate of the CA, for a client's CA file.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// ServerConfig returns the TLS configuration (1.2 and later) of a server with a certificate for the names and IP addresses.
func (a *Authority) ServerConfig(hosts ...string) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the server: %w", err)
	}
	wanted := certificate("fake server")
	wanted.KeyUsage = x509.KeyUsageDigitalSignature
	wanted.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			wanted.IPAddresses = append(wanted.IPAddresses, ip)
		} else {
			wanted.DNSNames = append(wanted.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, wanted, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the server: %w", err)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}},
	}, nil
}
