package ipmi

import (
	"context"
	"encoding/hex"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	const statusPath, controlPath = "/ipmi/m1/Get Chassis Status", "/ipmi/m1/Chassis Control"
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, fakebmc.Config{})
		c.admin()
		inject := func(f fakebmc.Fault) (end func()) {
			f.Method, f.Count = Method, fakebmc.Always
			_, end = s.Fake.Inject(f)
			return end
		}
		end := inject(fakebmc.Fault{Path: statusPath, Status: 0xc0})
		c.want(0xc0, chassis, 1)
		end()

		end = inject(fakebmc.Fault{Path: controlPath, Accept: true})
		c.want(ok, chassis, 2, 1)
		if end(); s.BMC.On() || len(s.BMC.History()) != 0 {
			t.Errorf("power has changed: %v", s.BMC.History())
		}

		end = inject(fakebmc.Fault{Every: 3})
		var lost []int
		for n := range 7 {
			if code, _ := c.raw(chassis, 1); code == silent {
				lost = append(lost, n)
			}
		}
		if end(); len(lost) != 2 || lost[0] != 2 || lost[1] != 5 {
			t.Errorf("of 7 commands these were lost: %v", lost)
		}

		end = inject(fakebmc.Fault{Path: controlPath, Delay: 3 * time.Second})
		begin := time.Now()
		c.want(ok, chassis, 2, 1)
		if end(); time.Since(begin) != 3*time.Second || !s.BMC.On() {
			t.Errorf("the slow command took %s; %v", time.Since(begin), s.BMC.History())
		}
	})
}

func TestLog_namesCommands(t *testing.T) {
	t.Parallel()
	s, c := start(t, fakebmc.Config{})
	c.admin()
	c.want(ok, chassis, 8, bootFlags, 0xa0, 4, 0, 0, 0)
	s.Fake.Inject(fakebmc.Fault{Path: "Status"})
	if code, _ := c.raw(chassis, 1); code != silent {
		t.Errorf("code %#x", code)
	}
	for path, want := range map[string]fakebmc.Request{
		"Set System Boot Options": {Body: "05a004000000"}, "Get Chassis Status": {Status: -1}, "Set Session Privilege Level": {Body: "04"},
	} {
		found := 0
		for _, r := range s.Fake.Requests() {
			if r.Method == Method && r.Path == "/ipmi/m1/"+path && r.Status == want.Status && r.Body == want.Body {
				found++
			}
		}
		if found != 1 || s.Fake.Count(Method, path+"$") != 1 {
			t.Errorf("%s is %d times in %v", path, found, s.Fake.Requests())
		}
	}
}

// The packets of the specification: presence ping and pong of ASF (section 13.2), and Get Channel Authentication Capabilities with
// its answer outside a session (section 13.6), whose checksums are those of table 13-8.
func TestPackets_asSpecified(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ packet, answer string }{
		"ping":          {"0600ff06000011be80120000", "0600ff06000011be40120010000011be000000008100000000000000"},
		"capabilities":  {"0600ff07000000000000000000092018c88100388e04b5", "0600ff0700000000000000000010811c6320003800018004020000000021"},
		"not a ping":    {"0600ff06000011be40120000", ""},
		"RMCP's answer": {"0600ff86", ""},
		"old RMCP":      {"0500ff06000011be80120000", ""},
	} {
		s, _ := start(t, fakebmc.Config{})
		b, err := hex.DecodeString(tt.packet)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(s.Answer(t.Context(), b)); got != tt.answer {
			t.Errorf("%s: the answer is %s, want %s", name, got, tt.answer)
		}
	}
}

// FuzzAnswer sends anything, outside a session and in one.
func FuzzAnswer(f *testing.F) {
	for _, packets := range recorded(f) {
		for _, one := range packets {
			f.Add(one.sent)
		}
	}
	f.Add([]byte{rmcpVersion, 0, rmcpNoAck, classASF, 0, 0, 0x11, 0xbe, 0x80, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, c := start(t, fakebmc.Config{})
		c.admin()
		s.Answer(t.Context(), b)
		if len(b) > 2 {
			s.Answer(t.Context(), c.packet(b[0]>>1<<1&0x3f, b[1], b[2:]...))
			p := packet{
				format: authRMCP, encrypted: true, authenticated: true, session: c.number, sequence: 1 << 20,
				content: c.keys.encrypt(make([]byte, 16), b),
			}
			s.Answer(t.Context(), p.encode(c.keys.sign))
		}
	})
}

// wire is a network in memory, which a bubble of synctest sees.
type wire struct {
	net.PacketConn
	in, out chan []byte
	closed  chan struct{}
	once    sync.Once
}

func (w *wire) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case packet := <-w.in:
		return copy(b, packet), &net.UDPAddr{}, nil
	case <-w.closed:
		return 0, nil, net.ErrClosed
	}
}

func (w *wire) WriteTo(b []byte, _ net.Addr) (int, error) {
	w.out <- b
	return len(b), nil
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

// A Server that ends waits for nothing, and leaves no goroutine behind, which synctest checks.
func TestServe_endsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, fakebmc.Config{})
		w := &wire{in: make(chan []byte), out: make(chan []byte), closed: make(chan struct{})}
		c.exchange = func(b []byte) []byte { w.in <- b; return <-w.out }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Serve(ctx, w) }()
		c.admin()
		s.Fake.Inject(fakebmc.Fault{Delay: time.Hour})
		w.in <- c.packet(chassis, 2, 1)
		synctest.Wait()
		begin := time.Now()
		cancel()
		if err := <-ended; err != nil || time.Since(begin) > 0 || s.BMC.On() {
			t.Errorf("Serve: %v after %s; %v", err, time.Since(begin), s.BMC.History())
		}
	})
}

// Clients at the same time do not disturb each other, over real UDP.
func TestServe_manyClients(t *testing.T) {
	t.Parallel()
	s, _ := start(t, fakebmc.Config{})
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, conn) }()
	var clients sync.WaitGroup
	for n := range 8 {
		clients.Go(func() {
			c := &client{t: t, username: "admin", suite: suites[n%2], role: byte(administrator)}
			to, err := (&net.Dialer{}).DialContext(t.Context(), "udp", conn.LocalAddr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer to.Close()
			c.exchange = func(b []byte) []byte {
				answer := make([]byte, 1024)
				if _, err := to.Write(b); err != nil {
					t.Error(err)
				}
				length, err := to.Read(answer)
				if err != nil {
					t.Error(err)
				}
				return answer[:length]
			}
			for range 5 {
				c.number = 0
				c.admin()
				c.want(ok, chassis, 8, bootFlags, 0xe0, 4, 0, 0, 0)
				c.want(ok, chassis, 2, 1)
				c.want(ok, application, 0x3c, byte(c.number), byte(c.number>>8), 0, 0)
			}
		})
	}
	clients.Wait()
	cancel()
	if err := <-ended; err != nil || s.Sessions() != 0 || len(s.BMC.History(fakebmc.Commanded)) != 40 ||
		len(s.BMC.History(fakebmc.Booted)) != 1 {
		t.Errorf("Serve: %v; %d sessions; %v", err, s.Sessions(), s.BMC.History())
	}
}
