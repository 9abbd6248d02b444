package readiness

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// Cause says why a machine is not ready.
type Cause string

// The causes.
const (
	NoName      Cause = "no-name"     // the name of the host does not resolve
	Refused     Cause = "refused"     // nothing listens
	Unreachable Cause = "unreachable" // no route, or no answer in time
	Broken      Cause = "broken"      // the connection has ended before the answer
	Untrusted   Cause = "untrusted"   // the certificate: no known authority
	WrongName   Cause = "wrong-name"  // the certificate: for another host
	Expired     Cause = "expired"     // the certificate: not valid now
	NoTLS       Cause = "no-tls"      // the server does not speak TLS
	WrongStatus Cause = "status"
	WrongText   Cause = "text"
	Unstable    Cause = "unstable" // it has answered, but not for long enough
	Other       Cause = "other"
)

// problem is why an attempt has failed: what came back, and what to do.
type problem struct {
	cause        Cause
	fact, advice string
}

// problemOf explains the error of a connection. It drops the URL, which may have secrets.
func problemOf(err error) *problem {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	for _, explain := range []func(error) *problem{nameProblem, certificateProblem, connectionProblem} {
		if p := explain(err); p != nil {
			return p
		}
	}
	return &problem{Other, err.Error(), "Look at the console of the machine."}
}

func nameProblem(err error) *problem {
	var name *net.DNSError
	switch {
	case !errors.As(err, &name):
		return nil
	case name.IsNotFound:
		return &problem{NoName, fmt.Sprintf("the name %s does not exist", name.Name), fmt.Sprintf(
			"The computer that runs Terraform looks the name up. Check %s in ready_check, and whether this computer uses the name "+
				"servers that know it; an IP address needs none.", name.Name)}
	}
	return &problem{NoName, fmt.Sprintf("the name %s cannot be resolved", name.Name), fmt.Sprintf(
		"The name servers of the computer that runs Terraform do not answer for %s. Check them, or use an IP address in ready_check.",
		name.Name)}
}

func certificateProblem(err error) *problem {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &authority):
		return &problem{
			Untrusted, "its certificate is signed by an unknown authority",
			"Set ready_check.http.cacert_file to the certificate of the authority that signed it.",
		}
	case errors.As(err, &host):
		return &problem{
			WrongName, "its certificate is for another host: " + host.Error(),
			"Use a name in ready_check.http.url that the certificate has, or give the server a certificate for this one.",
		}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return &problem{
			Expired, "its certificate is not valid now: " + invalid.Error(),
			"Renew the certificate, or check the clocks of the machine and of the computer that runs Terraform.",
		}
	case errors.As(err, &invalid):
		return &problem{
			Untrusted, "its certificate is not accepted: " + invalid.Error(),
			"Give the server a certificate that is valid for it.",
		}
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return &problem{NoTLS, "the server does not speak TLS", "Use http:// in ready_check.http.url, or another port."}
	}
	return nil
}

func connectionProblem(err error) *problem {
	var network net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return &problem{Refused, "connection refused", "Nothing listens on that port: the system has not started, or its service has " +
			"not. Look at the console of the machine, and check the port in ready_check."}
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return &problem{Unreachable, "no route to the host", unreachable}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return &problem{Unreachable, "no answer in time", unreachable}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return &problem{Broken, "the connection was closed before an answer", "Something accepts connections and does not answer, such " +
			"as a proxy before the machine. Look at the service, and check the port in ready_check."}
	}
	return nil
}

const unreachable = "The check runs on the computer that runs Terraform, without a proxy. Can it reach the machine? Check the address " +
	"in ready_check, the network of the machine, and the firewalls between them."

func (h *HTTP) otherStatus(status int) *problem {
	wanted := "200 to 299"
	if h.Status != nil {
		wanted = strings.Trim(strings.ReplaceAll(fmt.Sprint(h.Status), " ", ", "), "[]")
	}
	p := &problem{
		WrongStatus, fmt.Sprintf("HTTP status %d, wanted: %s", status, wanted),
		"The server answers. Look at its log, or correct url or status in ready_check.http.",
	}
	if status/100 == 3 {
		p.advice = "The server redirects, which a ready check does not follow. Set ready_check.http.url to the URL that the server " +
			"redirects to, or add the status to ready_check.http.status."
	}
	return p
}

// otherText is the problem of an answer without the wanted text. cut: only its beginning was read.
func (h *HTTP) otherText(cut bool) *problem {
	where := "the answer"
	if cut {
		where = "the first MiB of the answer"
	}
	return &problem{
		WrongText, where + " does not contain the text in ready_check.http.contains",
		"The server answers with the wanted status. Look at what it sends, or correct ready_check.http.contains.",
	}
}
