package ipmi

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
)

func TestSession_opensWithEachCipherSuite(t *testing.T) {
	t.Parallel()
	for _, one := range suites {
		for _, kg := range []string{"", "key of the BMC"} {
			s, c := start(t, fakebmc.Config{})
			c.suite = one
			if kg != "" {
				s.Kg, c.kg = []byte(kg), []byte(kg)
			}
			c.admin()
			if status := c.want(ok, chassis, 1); status[0] != 0 || s.Sessions() != 1 {
				t.Errorf("suite %d: status %x, %d sessions", one.id, status, s.Sessions())
			}
			c.want(ok, application, 0x3c, byte(c.number), 0, 0, 0)
			if code, _ := c.raw(chassis, 1); code != silent || s.Sessions() != 0 || len(s.BMC.History()) != 0 {
				t.Errorf("suite %d, after Close Session: %#x, %d sessions, %v", one.id, code, s.Sessions(), s.BMC.History())
			}
		}
	}
}

func TestSession_isRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change  func(*Server, *client)
		want    completion
		refused int // logins in the history
	}{
		"wrong password":      {func(s *Server, _ *client) { s.BMC.SetPassword("other") }, statusInvalidCode, 1},
		"unknown user":        {func(_ *Server, c *client) { c.username = "root" }, statusUnauthorizedName, 1},
		"no such suite":       {func(_ *Server, c *client) { c.suite.integrity = 2 }, statusNoSuite, 0},
		"suite of newer BMCs": {func(s *Server, _ *client) { s.Suites = []byte{3} }, statusNoSuite, 0},
		"key of the BMC":      {func(s *Server, _ *client) { s.Kg = []byte("k") }, statusInvalidCode, 0}, // only the client sees it
		"level of an OEM":     {func(_ *Server, c *client) { c.role = 5 }, statusUnauthorizedLevel, 0},
		"mute":                {func(s *Server, _ *client) { s.Fake.Unplug() }, silent, 0},
		"no answer to RAKP 3": {func(s *Server, _ *client) { s.Fake.Inject(fakebmc.Fault{Path: "RAKP 3"}) }, silent, 0},
		"no room for sessions": {func(s *Server, _ *client) {
			s.Fake.Inject(fakebmc.Fault{Path: "Open Session", Status: 1})
		}, statusFull, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := start(t, fakebmc.Config{})
			tt.change(s, c)
			password := "secret"
			if name == "wrong password" {
				password = "guess"
			}
			if got := c.login(password); got != tt.want {
				t.Errorf("status %#x, want %#x", got, tt.want)
			}
			if got := len(s.BMC.History(fakebmc.LoginRefused)); got != tt.refused {
				t.Errorf("%d refused logins, want %d", got, tt.refused)
			}
		})
	}
}

// A client finds out from RAKP 2 that the password is wrong. It says so with a status that is not 0, or, as ipmitool, says nothing.
func TestSession_countsClientsThatGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, fakebmc.Config{})
		if status, _ := c.setUp(payloadRAKP3, []byte{3, 15, 0, 0, 1, 0, 0, 0}); status != statusInvalidSession {
			t.Errorf("RAKP 3 without a session: %#x", status)
		}
		begin := func(number byte) {
			c.setUp(payloadOpenRequest, append([]byte{1, 0, 0, 0, 1, 0, 0, 0}, c.suite.payloads()...))
			rakp1 := append(make([]byte, 28), "admin"...)
			rakp1[4], rakp1[27] = number, 5
			if status, _ := c.setUp(payloadRAKP1, rakp1); status != statusOK {
				t.Fatalf("RAKP 1: %#x", status)
			}
		}
		begin(1)
		if status, _ := c.setUp(payloadRAKP3, []byte{3, 15, 0, 0, 1, 0, 0, 0}); status != silent {
			t.Errorf("RAKP 3 of a client that gives up: %#x", status)
		}
		if got := s.BMC.History(fakebmc.LoginRefused); len(got) != 1 || s.Sessions() != 0 {
			t.Errorf("refused logins: %v; %d sessions", got, s.Sessions())
		}
		begin(2)
		c.admin()
		time.Sleep(6 * time.Second)
		c.want(ok, chassis, 1)
		if got := s.BMC.History(fakebmc.LoginRefused); len(got) != 2 || s.Sessions() != 1 {
			t.Errorf("refused logins: %v; %d sessions", got, s.Sessions())
		}
	})
}

func TestSession_ends(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Server, *client){
		"without messages": func(*Server, *client) { time.Sleep(61 * time.Second) },
		"with its password": func(s *Server, _ *client) {
			s.BMC.SetPassword("other")
		},
		"with the BMC": func(_ *Server, c *client) { c.want(ok, application, 0x02) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, c := start(t, fakebmc.Config{RestartTime: time.Second})
				c.admin()
				time.Sleep(59 * time.Second)
				c.want(ok, chassis, 1)
				end(s, c)
				time.Sleep(2 * time.Second)
				if code, _ := c.raw(chassis, 1); code != silent || s.Sessions() != 0 {
					t.Errorf("code %#x, %d sessions", code, s.Sessions())
				}
			})
		})
	}
}

func TestSession_limit(t *testing.T) {
	t.Parallel()
	_, c := start(t, fakebmc.Config{})
	for n := range sessionLimit {
		if status := c.login("secret"); status != statusOK {
			t.Fatalf("session %d: %#x", n, status)
		}
	}
	if status := c.login("secret"); status != statusFull {
		t.Errorf("one more: %#x", status)
	}
}

func TestSession_levels(t *testing.T) {
	t.Parallel()
	s, c := start(t, fakebmc.Config{})
	c.role = byte(operator)
	if status := c.login("secret"); status != statusOK {
		t.Fatal(status)
	}
	c.want(ok, chassis, 1)
	c.want(insufficientPrivilege, chassis, 2, 1) // a session begins at the level of users
	c.want(exceeds, application, 0x3b, byte(administrator))
	c.want(notAvailable, application, 0x3b, 5)
	if level := c.want(ok, application, 0x3b, byte(operator)); level[0] != byte(operator) {
		t.Errorf("the level is %d", level)
	}
	if level := c.want(ok, application, 0x3b, 0); level[0] != byte(operator) {
		t.Errorf("the level is %d", level)
	}
	c.want(ok, chassis, 2, 1)
	c.want(insufficientPrivilege, application, 2)
	if !s.BMC.On() || len(s.BMC.History(fakebmc.ManagerRestarted)) != 0 {
		t.Errorf("the history is %v", s.BMC.History())
	}
}

func TestMessages_thatAreNotProtectedGetNoAnswer(t *testing.T) {
	t.Parallel()
	s, c := start(t, fakebmc.Config{})
	if code, _ := c.raw(chassis, 2, 1); code != insufficientPrivilege {
		t.Errorf("outside a session: %#x", code)
	}
	c.admin()
	for name, change := range map[string]func(p *packet){
		"neither": func(p *packet) { p.encrypted, p.authenticated = false, false },
		"not encrypted": func(p *packet) {
			p.encrypted, p.content = false, message{to: 0x20, from: 0x81, command: 2, data: []byte{1}}.encode()
		},
		"not signed":      func(p *packet) { p.authenticated = false },
		"another session": func(p *packet) { p.session++ },
		"repeated":        func(p *packet) { p.sequence = 1 },
	} {
		c.sequence++
		m := message{to: 0x20, from: 0x81, command: 2, data: []byte{1}}.encode()
		p := packet{
			format: authRMCP, encrypted: true, authenticated: true, session: c.number, sequence: c.sequence,
			content: c.keys.encrypt(make([]byte, 16), m),
		}
		if name == "neither" {
			p.content = m
		}
		change(&p)
		if answer := c.exchange(p.encode(c.keys.sign)); answer != nil {
			t.Errorf("%s: %x", name, answer)
		}
	}
	altered := c.packet(chassis, 2, 1)
	altered[20] ^= 1
	if answer := c.exchange(altered); answer != nil || s.BMC.On() {
		t.Errorf("altered: %x", answer)
	}
	c.want(ok, chassis, 2, 1)
}
