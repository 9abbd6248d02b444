package bmc

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// driver is what the fake Ironic does at the end of an operation on a node with a BMC: it sends those requests of a real Ironic
// that tests check at the BMC. It returns the last_error of the operation.
func driver(node fakeironic.Node, verb string) string {
	info, _ := node.Raw["driver_info"].(map[string]any)
	switch {
	case site.Text(info["ipmi_address"]) != "":
		return ipmiDriver(node, info, verb)
	case site.Text(info["redfish_address"]) == "":
		return ""
	}
	c := client{node: node, info: info}
	switch verb {
	case "manage":
		c.send(http.MethodGet, "", nil)
		if c.failure != "" {
			return fmt.Sprintf("Failed to get power state for node %s. Error: %s", node.UUID, c.failure)
		}
	case "active", "rebuild":
		c.boot()
	case "deleted":
		if node.ProvisionState == "deleting" {
			c.reset("ForceOff")
			c.media("EjectMedia", map[string]any{})
		}
	case "power on":
		c.reset("On")
	case "power off":
		c.reset("ForceOff")
	case "soft power off":
		c.shutDown()
	case "inject_nmi":
		c.reset("Nmi")
	case "rebooting":
		c.reset("ForceOff")
		c.reset("On")
	}
	return c.failure
}

// client speaks Redfish to the BMC of a node.
type client struct {
	node    fakeironic.Node
	info    map[string]any
	failure string // the first
}

// boot boots the live ISO of the node.
func (c *client) boot() {
	instance, _ := c.node.Raw["instance_info"].(map[string]any)
	image := site.Text(instance["boot_iso"])
	if image == "" || !strings.HasSuffix(site.Text(c.node.Raw["boot_interface"]), "virtual-media") {
		return
	}
	c.reset("ForceOff")
	c.media("EjectMedia", map[string]any{})
	c.media("InsertMedia", map[string]any{"Image": image})
	c.send(http.MethodPatch, "", map[string]any{"Boot": map[string]any{
		"BootSourceOverrideTarget":  "Cd",
		"BootSourceOverrideEnabled": "Continuous",
	}})
	c.reset("On")
}

// softTime is how long the machine has for a graceful shutdown.
const softTime = 3 * time.Second

// shutDown asks the operating system to shut down.
func (c *client) shutDown() {
	c.reset("GracefulShutdown")
	for end := time.Now().Add(softTime); c.failure == "" && !strings.Contains(c.send(http.MethodGet, "", nil),
		`"PowerState":"Off"`); <-time.After(100 * time.Millisecond) {
		if time.Now().After(end) {
			c.failure = "Failed to change power state to 'power off' by 'soft power off': Failed to set node power state to power off."
		}
	}
}

func (c *client) reset(kind string) {
	c.send(http.MethodPost, "/Actions/ComputerSystem.Reset", map[string]any{"ResetType": kind})
}

func (c *client) media(action string, body map[string]any) {
	c.send(http.MethodPost, "/VirtualMedia/Cd/Actions/VirtualMedia."+action, body)
}

// send sends a request to the system, or to its manager if it is about virtual media, unless an earlier one failed.
// It returns the answer.
func (c *client) send(method, path string, body map[string]any) string {
	if c.failure != "" {
		return ""
	}
	system := site.Text(c.info["redfish_system_id"])
	if strings.HasPrefix(path, "/VirtualMedia") {
		system = strings.Replace(system, "/Systems/", "/Managers/", 1)
	}
	url := site.Text(c.info["redfish_address"]) + system + path
	content, _ := json.Marshal(body)                                   // strings only
	req, err := http.NewRequest(method, url, bytes.NewReader(content)) //nolint:noctx // ends with the client's time-out
	if err != nil {
		c.failure = err.Error()
		return ""
	}
	req.SetBasicAuth(site.Text(c.info["redfish_username"]), site.Text(c.info["redfish_password"]))
	transport := &http.Transport{TLSClientConfig: c.trust(), DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		words := err.Error()
		if unknown := new(tls.CertificateVerificationError); errors.As(err, &unknown) {
			words = fmt.Sprintf("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: %v'))",
				unknown)
		}
		c.failure = fmt.Sprintf("Redfish connection failed for node %s: Unable to connect to %s. Error: %s", c.node.UUID, url, words)
		return ""
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body) // a truncated answer counts as a short one
	if resp.StatusCode/100 != 2 {
		c.failure = fmt.Sprintf("Redfish exception occurred. Error: HTTP %s %s returned code %d. %s", method, url, resp.StatusCode, answer)
	}
	return string(answer)
}

// trust is the CA of driver_info: a file, true or false.
func (c *client) trust() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	switch verify := c.info["redfish_verify_ca"].(type) {
	case bool:
		config.InsecureSkipVerify = !verify //nolint:gosec // as the node says
	case string:
		config.RootCAs = x509.NewCertPool()
		content, _ := os.ReadFile(verify) // no certificate if it is not there
		config.RootCAs.AppendCertsFromPEM(content)
	}
	return config
}

// Command sends a reset to the BMC as another client of it.
func (b *Controller) Command(kind string) {
	username, password := b.Credentials()
	c := client{info: map[string]any{
		"redfish_address": b.URL, "redfish_system_id": b.Path(), "redfish_username": username, "redfish_password": password,
		"redfish_verify_ca": false,
	}}
	if c.reset(kind); c.failure != "" {
		b.t.Fatal(c.failure)
	}
}

// MediumIs reports whether the CD drive of the BMC holds the image of a name of an ISOServer: Ironic may serve a copy.
func (b *Controller) MediumIs(name string) bool {
	b.t.Helper()
	if b.Medium() == "" {
		return false
	}
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.Medium(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return bytes.HasPrefix(content, []byte(name+"\n"))
}
