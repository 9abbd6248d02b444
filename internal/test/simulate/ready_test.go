package simulate_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// machinesHost is the end of the names of the machines that ready checks ask.
const machinesHost = ".machines.test:22"

// webHost is machinesHost for ready checks over HTTP.
const webHost = ".machines.test"

// temper says how the system of a machine answers after it was started. It is the first label of the machine's name.
type temper string

const (
	prompt  temper = "prompt"  // at once
	slow    temper = "slow"    // after 40 s
	flapper temper = "flapper" // now and then for 100 s, then always
	sleeper temper = "sleeper" // not at all for 60 s, then at once
)

// tempers are all, and none: there is no ready check.
var tempers = []temper{"", prompt, slow, flapper, sleeper}

// readyCheck is the ready check of a machine.
func readyCheck(t temper, machine string) object {
	check := object{"tcp": string(t) + "." + machine + machinesHost, "timeout": "10m"}
	if t == flapper {
		check["stable_for"] = "20s"
	}
	return check
}

// changeReady changes, adds or removes the ready check of a deployment.
func changeReady(l *tale) string {
	all := l.deployments()
	if len(all) == 0 {
		return ""
	}
	of, address := tempers[l.below(len(tempers))], all[l.below(len(all))]
	delete(l.config[address], "ready_check")
	if of != "" {
		l.config[address]["ready_check"] = readyCheck(of, l.next("m"))
	}
	return fmt.Sprintf("ready check of %s: %q", address, of)
}

// systems are what runs on the machines of a site, by address. The mutex of the site protects them.
type systems struct {
	mute     bool                 // none answers
	asked    map[string]time.Time // when it was first asked since a machine was last started
	answered map[string]time.Time // when it has answered last
	started  map[string]time.Time // when a run has last started a machine, by node
}

// start records that a run starts a machine. mu is held.
func (s *systems) start(v sent) {
	switch v.target {
	case "active", "rebuild", "power on", "rebooting", "soft rebooting", "unrescue":
		if s.started == nil {
			s.started = map[string]time.Time{}
		}
		s.started[v.node], s.asked = time.Now(), nil
	}
}

// ask asks a system, and says what comes back.
func (s *site) ask(address string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.systems.mute {
		return syscall.ECONNREFUSED
	}
	if s.systems.asked == nil {
		s.systems.asked = map[string]time.Time{}
	}
	if s.systems.asked[address].IsZero() {
		s.systems.asked[address] = time.Now()
	}
	since := time.Since(s.systems.asked[address])
	of, _, _ := strings.Cut(address, ".")
	switch of := temper(of); {
	case of == slow && since < 40*time.Second, of == flapper && since < 100*time.Second && since/(7*time.Second)%2 == 1:
		return syscall.ECONNREFUSED
	case of == sleeper && since < time.Minute:
		return context.DeadlineExceeded
	}
	if s.systems.answered == nil {
		s.systems.answered = map[string]time.Time{}
	}
	s.systems.answered[address] = time.Now()
	return nil
}

// answers lets all machines answer their ready checks, or none.
func (s *site) answers(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.systems.mute = !all
}

// DialContext connects to a machine, for a ready check.
func (l *line) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	switch {
	case l.isDead():
		return nil, errKilled
	case network != "tcp" || !strings.HasSuffix(address, machinesHost) && !strings.HasSuffix(address, webHost+":80"):
		l.site.broken("%s: a connection to %s", l.run, address)
	}
	err := l.site.ask(address)
	if err == context.DeadlineExceeded { //nolint:errorlint // it is that
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	here, there := net.Pipe()
	if strings.HasSuffix(address, webHost+":80") {
		go answerHTTP(there)
		return here, nil
	}
	_ = there.Close()
	return here, nil
}

// answerHTTP answers one request with a text.
func answerHTTP(on net.Conn) {
	defer on.Close()
	if _, err := http.ReadRequest(bufio.NewReader(on)); err == nil {
		_, _ = io.WriteString(on, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nready")
	}
}

// checkReady checks, after an apply that has succeeded, that the machines have answered since they were last started, and that the state
// says so.
func (s *site) checkReady(config configuration, now states) {
	for address, settings := range config {
		i, check := now[address], settings["ready_check"]
		if kindName(address) != "metal_deployment" || i == nil {
			continue
		}
		if n, _ := s.fake.Node(i.node()); n.ProvisionState != "active" && settings["rescue"] == nil { // another client rescues it
			continue
		}
		ready := i.value.GetAttr("ready")
		if check == nil || settings["power_state"] == "off" || settings["rescue"] != nil {
			if !ready.IsNull() {
				s.broken("%s: ready is %#v, and the machine is not checked", address, ready)
			}
			continue
		}
		target, _ := check.(object)["tcp"].(string)
		s.mu.Lock()
		answered, started := s.systems.answered[target], s.systems.started[i.node()]
		s.mu.Unlock()
		if ready.IsNull() || ready.False() || answered.Before(started) {
			s.broken("%s: ready is %#v; the machine was started at %s and has answered last at %s", address, ready,
				started.Format(time.TimeOnly), answered.Format(time.TimeOnly))
		}
	}
}
