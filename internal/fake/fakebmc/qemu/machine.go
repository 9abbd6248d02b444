// Package qemu has a machine that really boots, for a fakebmc.BMC: a virtual one that QEMU runs. Power is the process, the boot
// override is the boot order of a process, and virtual media is its CD drive.
package qemu

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
)

// The firmware of Debian's package ovmf.
const (
	firmware  = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	variables = "/usr/share/OVMF/OVMF_VARS_4M.fd"
)

// Config describes a machine. All but Dir may be empty.
type Config struct {
	Dir    string // for its disks, its firmware's variables, its medium, and console.log; it must exist
	MAC    string
	Serial string
	// the TAP interface to which the network card is connected; "" means QEMU's user network, which nothing reaches from outside
	Tap       string
	MemoryMiB int   // 0 means 2048
	CPUs      int   // 0 means 2
	DiskBytes int64 // 0 means 2 GiB
	DataBytes int64 // of a second disk; 0 means none
	Emulate   bool  // emulate the processor, even if KVM is there
}

// Machine is a virtual machine. A machine that restarts is a new process, so that it boots as the BMC then says.
type Machine struct {
	config Config
	post   func() fakebmc.Boot
	off    func()

	mu     sync.Mutex
	power  *power // nil while the machine is off
	medium string // the file in the CD drive; "" if it is empty
	media  int    // number of the last medium
	bad    bool   // the second disk
}

// power is the time from power on to power off.
type power struct {
	monitor *monitor // of the current process; nil before the first
	process *os.Process
	again   bool          // at the end of the process begins the next
	cut     bool          // power off at the end of the process, whatever the guest asked for
	ended   chan struct{} // closed at power off
}

// New returns a machine that is off, with empty disks.
func New(config Config) (*Machine, error) {
	if config.MemoryMiB == 0 {
		config.MemoryMiB = 2048
	}
	if config.CPUs == 0 {
		config.CPUs = 2
	}
	if config.DiskBytes == 0 {
		config.DiskBytes = 2 << 30
	}
	m := &Machine{config: config}
	if _, err := exec.LookPath(program); err != nil {
		return nil, err
	}
	if err := copyFile(variables, m.file("variables")); err != nil {
		return nil, fmt.Errorf("the firmware of Debian's package ovmf: %w", err)
	}
	if err := newDisk(m.Disk(), config.DiskBytes); err != nil || config.DataBytes == 0 {
		return m, err
	}
	return m, newDisk(m.Data(), config.DataBytes)
}

// newDisk makes the file of an empty disk.
func newDisk(name string, size int64) error {
	disk, err := os.Create(name)
	if err != nil {
		return err
	}
	defer disk.Close()
	return disk.Truncate(size)
}

// Disk returns the name of the file with the content of the disk.
func (m *Machine) Disk() string { return m.file("disk") }

// Data returns the name of the file with the content of the second disk.
func (m *Machine) Data() string { return m.file("data") }

// dataWWN is the world wide name of the second disk.
const dataWWN uint64 = 0x5000c50015ea71ac

// DataWWN returns the world wide name of the second disk, as udev writes it.
func (*Machine) DataWWN() string { return fmt.Sprintf("0x%x", dataWWN) }

// DataSerial returns the serial number of the second disk.
func (m *Machine) DataSerial() string { return m.config.Serial + "-data" }

// SpoilData says whether writes to the second disk fail 1 MiB behind its begin, from the next boot on.
func (m *Machine) SpoilData(bad bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bad = bad
}

// Console returns the name of the file with everything that the machine wrote to its serial console.
func (m *Machine) Console() string { return m.file("console.log") }

func (m *Machine) file(name string) string { return filepath.Join(m.config.Dir, name) }

// Connect implements fakebmc.Machine.
func (m *Machine) Connect(post func() fakebmc.Boot, off func()) { m.post, m.off = post, off }

// On implements fakebmc.Machine.
func (m *Machine) On() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.power != nil
}

// Start implements fakebmc.Machine.
func (m *Machine) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.power == nil {
		m.power = &power{ended: make(chan struct{})}
		go m.run(m.power)
	}
	return nil
}

// Stop implements fakebmc.Machine. It returns when the process has ended: nothing writes to the disk any more.
func (m *Machine) Stop() error {
	m.mu.Lock()
	p := m.power
	if p != nil {
		p.cut = true
		p.kill()
	}
	m.mu.Unlock()
	if p != nil {
		<-p.ended
	}
	return nil
}

// Reset implements fakebmc.Machine.
func (m *Machine) Reset() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.power != nil && m.power.process != nil {
		m.power.again = true
		m.power.kill()
	}
	return nil
}

// Shutdown implements fakebmc.Machine.
func (m *Machine) Shutdown() error { return m.command("system_powerdown", nil) }

// Reboot implements fakebmc.Machine. QEMU's power button has one meaning: the operating system shuts down, and the next boot follows.
func (m *Machine) Reboot() error {
	m.mu.Lock()
	if m.power != nil {
		m.power.again = true
	}
	m.mu.Unlock()
	return m.Shutdown()
}

// Interrupt implements fakebmc.Machine.
func (m *Machine) Interrupt() error { return m.command("inject-nmi", nil) }

// Insert implements fakebmc.Machine. It fetches the whole image first. Only the CD drive exists; the machine does not see a USB
// stick.
func (m *Machine) Insert(drive, image string) error {
	if drive != "Cd" {
		return nil
	}
	m.mu.Lock()
	m.media++
	name := m.file(fmt.Sprintf("medium-%d", m.media))
	m.mu.Unlock()
	if err := fetch(image, name); err != nil {
		return err
	}
	if err := m.Eject(drive); err != nil {
		return err
	}
	m.mu.Lock()
	m.medium = name
	m.mu.Unlock()
	return m.command("blockdev-change-medium", map[string]any{"id": cdDevice, "filename": name, "format": "raw"})
}

// Eject implements fakebmc.Machine.
func (m *Machine) Eject(drive string) error {
	if drive != "Cd" {
		return nil
	}
	m.mu.Lock()
	name := m.medium
	m.medium = ""
	m.mu.Unlock()
	if name == "" {
		return nil
	}
	if err := m.command("eject", map[string]any{"id": cdDevice, "force": true}); err != nil {
		return err
	}
	return os.Remove(name)
}

// command sends a command to QEMU. A machine that is off needs none.
func (m *Machine) command(name string, arguments map[string]any) error {
	m.mu.Lock()
	var to *monitor
	if m.power != nil {
		to = m.power.monitor
	}
	m.mu.Unlock()
	if to == nil {
		return nil
	}
	if err := to.execute(name, arguments); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

// kill ends the process of the machine.
func (p *power) kill() {
	if p.process != nil {
		_ = p.process.Kill() // the process may have ended already
	}
}

// run boots the machine, again after each restart, until it is off.
func (m *Machine) run(p *power) {
	runtime.LockOSThread() // the kernel ends QEMU with the thread that started it
	defer runtime.UnlockOSThread()
	for m.boot(p) {
	}
	m.mu.Lock()
	m.power = nil
	m.mu.Unlock()
	m.off()
	close(p.ended)
}

// boot runs QEMU from one boot to the next or to the end, and reports whether there is a next.
func (m *Machine) boot(p *power) (again bool) {
	boot := m.post()
	m.mu.Lock()
	p.again = false
	if p.cut {
		m.mu.Unlock()
		return false
	}
	cmd, monitor, err := m.launch(boot)
	if err == nil {
		p.process, p.monitor = cmd.Process, monitor
	}
	m.mu.Unlock()
	if err != nil {
		m.note(err)
		return false
	}
	restarted := monitor.wait()
	if err := cmd.Wait(); err != nil {
		m.note(err) // also that it was killed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return !p.cut && (p.again || restarted)
}

// launch starts QEMU.
func (m *Machine) launch(boot fakebmc.Boot) (*exec.Cmd, *monitor, error) {
	monitor, end, err := newMonitor()
	if err != nil {
		return nil, nil, err
	}
	defer end.Close()
	log, err := os.OpenFile(m.file("qemu.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, m.arguments(boot)...) //nolint:noctx // power off ends it
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{end}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		monitor.close()
		return nil, nil, err
	}
	go monitor.read()
	return cmd, monitor, nil
}

// note writes an error to qemu.log.
func (m *Machine) note(err error) {
	if log, failure := os.OpenFile(m.file("qemu.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); failure == nil {
		_, _ = fmt.Fprintln(log, err)
		_ = log.Close()
	}
}

// fetch writes what a URL serves to a file.
func fetch(url, name string) error {
	response, err := http.Get(url) //nolint:gosec,noctx // a BMC fetches what it is told
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return write(name, response.Body)
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	return write(to, source)
}

func write(name string, content io.Reader) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, content); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// The ids of QEMU's devices.
const (
	program  = "qemu-system-x86_64"
	cdDevice = "cd"
)

// modeUEFI is a fakebmc.Boot's mode. Any other means a BIOS.
const modeUEFI = "UEFI"

// arguments returns the command line of QEMU for one boot.
func (m *Machine) arguments(boot fakebmc.Boot) []string {
	c := m.config
	order := map[string]int{"disk": 1, "cd": 2, "network": 3}
	switch boot.Source {
	case "Cd", "UsbCd":
		order["cd"] = 0
	case "Pxe", "UefiHttp":
		order["network"] = 0
	}
	index := func(device string) string { return ",bootindex=" + strconv.Itoa(order[device]) }
	network, cd := "user,id=net", "if=none,id=cdrom,media=cdrom"
	if c.Tap != "" {
		network = "tap,id=net,ifname=" + c.Tap + ",script=no,downscript=no"
	}
	if m.medium != "" {
		cd += ",format=raw,file=" + m.medium
	}
	card := "virtio-net-pci,netdev=net"
	if boot.Mode == modeUEFI {
		card += ",romfile=" // the firmware boots from the network itself, as a server's does; a BIOS needs the ROM of the card
	}
	if c.MAC != "" {
		card += ",mac=" + c.MAC
	}
	args := []string{"-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35,sata=off"}
	if !c.Emulate {
		args = append(args, "-accel", "kvm")
	}
	args = append(args, "-accel", "tcg", "-cpu", "max", "-m", strconv.Itoa(c.MemoryMiB), "-smp", strconv.Itoa(c.CPUs),
		"-no-reboot", // it ends instead, and the BMC says how the next one boots
		"-chardev", "socket,id=monitor,fd=3", "-mon", "chardev=monitor,mode=control",
		"-chardev", "file,id=console,append=on,path="+m.Console(), "-serial", "chardev:console",
		"-smbios", "type=1,manufacturer=Contoso,product=3500,serial="+c.Serial,
		"-device", "virtio-rng-pci", "-device", "virtio-scsi-pci",
		"-drive", "if=none,id=hd,format=raw,cache=unsafe,discard=unmap,file="+m.Disk(),
		"-device", "scsi-hd,drive=hd,serial="+c.Serial+index("disk"),
		"-drive", cd, "-device", "scsi-cd,drive=cdrom,id="+cdDevice+index("cd"),
		"-netdev", network, "-device", card+index("network"),
	)
	if c.DataBytes > 0 {
		file := "file=" + m.Data()
		if m.bad {
			const rule = ",file.inject-error.0."
			file = "werror=report,file.driver=blkdebug,file.image.driver=file,file.image.filename=" + m.Data() +
				rule + "event=none" + rule + "iotype=write" + rule + "errno=5" + rule + "sector=2048"
		}
		args = append(args, "-drive", "if=none,id=data,format=raw,cache=unsafe,discard=unmap,"+file,
			"-device", fmt.Sprintf("scsi-hd,drive=data,serial=%s,wwn=%d", m.DataSerial(), dataWWN))
	}
	if boot.Mode == modeUEFI {
		args = append(args, "-drive", "if=pflash,format=raw,readonly=on,file="+firmware, "-drive", "if=pflash,format=raw,file="+
			m.file("variables"))
	}
	return args
}
