package ipmi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
)

var update = flag.Bool("update", false, "record the conversations with ipmitool again")

// packets are a packet of ipmitool, and the answer to it.
type packets struct{ sent, answer []byte }

// recorded returns the conversations with ipmitool that testdata has, by file.
func recorded(t testing.TB) map[string][]packets {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there is no conversation in testdata", err)
	}
	all := map[string][]packets{}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			sent, answer, _ := strings.Cut(lines.Text(), " ")
			var one packets
			if one.sent, err = hex.DecodeString(sent); err != nil {
				t.Fatal(err)
			}
			if one.answer, err = hex.DecodeString(answer); err != nil {
				t.Fatal(err)
			}
			all[name] = append(all[name], one)
		}
		_ = file.Close()
	}
	return all
}

// Each conversation that ipmitool once understood has the same answers today: also where there is no ipmitool.
func TestAnswers_asIPMIToolUnderstoodThem(t *testing.T) {
	t.Parallel()
	for name, packets := range recorded(t) {
		s, _ := start(t, fakebmc.Config{})
		for i, one := range packets {
			if got := s.Answer(t.Context(), one.sent); !bytes.Equal(got, one.answer) {
				t.Errorf("%s: packet %d is answered\n%x, want\n%x", name, i, got, one.answer)
			}
		}
	}
}

// tool runs ipmitool.
type tool struct {
	t       *testing.T
	address *net.UDPAddr
	options []string
}

func (i tool) run(password, command string) (string, error) {
	i.t.Helper()
	args := slices.Concat([]string{
		"-I", "lanplus", "-H", i.address.IP.String(), "-p", fmt.Sprint(i.address.Port), "-U", "admin", "-P", password, "-R", "4", "-N", "1",
	}, i.options, strings.Fields(command))
	output, err := exec.CommandContext(i.t.Context(), "ipmitool", args...).CombinedOutput()
	return string(output), err
}

// must fails the test unless ipmitool succeeds and says something.
func (i tool) must(mention, command string) {
	i.t.Helper()
	if output, err := i.run("secret", command); err != nil || !strings.Contains(output, mention) {
		i.t.Errorf("ipmitool %v %s does not say %q: %v\n%s", i.options, command, mention, err, output)
	}
}

// startTool serves a BMC for ipmitool, and records the conversation.
func startTool(t *testing.T) (*Server, tool, *[]packets) {
	t.Helper()
	if _, err := exec.LookPath("ipmitool"); err != nil {
		t.Skip("Debian's package ipmitool is not installed")
	}
	s, _ := start(t, fakebmc.Config{})
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	recording := &[]packets{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, 1024)
		for {
			n, client, err := conn.ReadFrom(buffer)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			sent := slices.Clone(buffer[:n])
			answer := s.Answer(context.WithoutCancel(t.Context()), sent)
			*recording = append(*recording, packets{sent, answer})
			if answer != nil {
				_, _ = conn.WriteTo(answer, client)
			}
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-ended })
	address, _ := conn.LocalAddr().(*net.UDPAddr)
	return s, tool{t: t, address: address}, recording
}

func TestAccIPMITool_agrees(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]string{
		"finds-suite": nil, "suite-3": {"-C", "3"}, "suite-17": {"-C", "17"},
		"operator": {"-L", "OPERATOR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, i, recording := startTool(t)
			i.options = options
			i.must("Power is off", "power status")
			i.must("", "raw 0x00 0x08 0x03 0x08")
			i.must("", "raw 0x00 0x08 0x05 0xe0 0x04 0x00 0x00 0x00")
			i.must("Up/On", "power on")
			i.must("Power is on", "power status")
			i.must("Diag", "power diag")
			i.must("Set Boot Device to disk", "chassis bootdev disk options=persistent")
			i.must("Force Boot from default Hard-Drive", "chassis bootparam get 5")
			i.must("Options apply to all future boots", "chassis bootparam get 5")
			i.must("Reset", "power reset")
			i.must("Cycle", "power cycle")
			i.must("Soft", "power soft")
			i.must("Power is off", "power status")
			i.must("Down/Off", "power off")
			i.must("IPMI Version              : 2.0", "mc info")
			if got := details(s.BMC, fakebmc.Booted); !slices.Equal(got, []string{"Pxe", "Hdd", "Hdd"}) {
				t.Errorf("booted %v", got)
			}
			if got := details(s.BMC, fakebmc.Commanded); !slices.Equal(got, []string{
				"On", "Nmi", "ForceRestart", "PowerCycle",
				"GracefulShutdown", "ForceOff",
			}) {
				t.Errorf("commanded %v", got)
			}
			if s.Sessions() != 0 || len(s.BMC.History(fakebmc.LoginRefused)) != 0 {
				t.Errorf("%d sessions are open; %v", s.Sessions(), s.BMC.History())
			}
			if *update && name != "operator" {
				var text strings.Builder
				for _, one := range *recording {
					fmt.Fprintf(&text, "%x %x\n", one.sent, one.answer)
				}
				if err := os.WriteFile(filepath.Join("testdata", name+".txt"), []byte(text.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// The machine has no sensors and no events: their lists are empty, which is no error. It knows its product, its network and its user.
func TestAccIPMITool_inventory(t *testing.T) {
	t.Parallel()
	_, i, _ := startTool(t)
	for command, mention := range map[string]string{
		"sel list": "SEL has no entries", "sel info": "Entries          : 0", "sdr info": "Record Count                        : 1",
		"sdr list all": "BMC", "sensor": "", "fru print": "Product Manufacturer  : Contoso", "lan print 1": "Static Address",
		"user list 1": "ADMINISTRATOR", "channel info 1": "802.3 LAN", "sel time get": "",
	} {
		i.must(mention, command)
	}
}

func TestAccIPMITool_faults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault    fakebmc.Fault
		password string
		options  []string
		kg       string
		mention  string // of the error; empty: it succeeds
		left     bool   // the client gives up after RAKP 1, which counts as a refused login after a time
	}{
		"wrong password": {fakebmc.Fault{Path: "nothing"}, "guess", nil, "", "Unable to establish", true},
		"mute":           {fakebmc.Fault{}, "secret", []string{"-R", "1"}, "", "Unable to establish", false},
		"busy":           {fakebmc.Fault{Path: "Get Chassis Status", Status: 0xc0}, "secret", nil, "", "Node busy", false},
		"lost packets":   {fakebmc.Fault{Every: 4}, "secret", nil, "", "", false},
		"slow":           {fakebmc.Fault{Path: "Chassis Status", Delay: 500_000_000}, "secret", nil, "", "", false},
		"key of the BMC": {fakebmc.Fault{Path: "nothing"}, "secret", []string{"-y", "6b6579"}, "key", "", false},
		"without it":     {fakebmc.Fault{Path: "nothing"}, "secret", nil, "key", "Unable to establish", false},
		"no suite":       {fakebmc.Fault{Path: "nothing"}, "secret", []string{"-C", "8"}, "", "no matching cipher suite", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, i, _ := startTool(t)
			s.Kg, i.options = []byte(tt.kg), tt.options
			tt.fault.Method, tt.fault.Count = Method, fakebmc.Always
			s.Fake.Inject(tt.fault)
			output, err := i.run(tt.password, "power status")
			if (err == nil) != (tt.mention == "") || !strings.Contains(output, tt.mention) {
				t.Errorf("ipmitool: %v\n%s", err, output)
			}
			if left := s.Fake.Count(Method, "RAKP 1") > 0 && s.Fake.Count(Method, "RAKP 3") == 0; left != tt.left {
				t.Errorf("the commands are %v", s.Fake.Requests())
			}
		})
	}
}
