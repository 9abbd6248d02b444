package naming_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/naming"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// found returns the node of a machine that Ironic has just discovered, number n of its rack.
func found(n int, changes ...func(*naming.Host)) naming.Host {
	mac := fmt.Sprintf("52:54:00:00:%02x:%02x", n/256, n%256)
	h := naming.Host{
		ID: fmt.Sprintf("%08d-0000-4000-8000-%012d", n, n), CreatedAt: noon.Add(time.Duration(n) * time.Second), State: naming.StateEnroll,
		PortMACs: []string{mac}, PXEMACs: []string{mac}, HasInventory: true, Hostname: fmt.Sprintf("node%d", n),
		Serial:       fmt.Sprintf("SN%d", n),
		Manufacturer: "Dell Inc.", Product: "R640", BMCAddress: fmt.Sprintf("10.12.0.%d", n%250+1), Driver: "fake-hardware",
		PXEInterface: "01-" + strings.ReplaceAll(mac, ":", "-"),
		Interfaces:   []naming.Interface{{Name: "eno1", MAC: strings.ToUpper(mac), HasCarrier: true}},
	}
	for _, change := range changes {
		change(&h)
	}
	return h
}

func bySerial() naming.Rules {
	return naming.Rules{Owner: "rack12", Template: naming.Template{Prefix: "r12-", Detail: naming.DetailSerialNumber}}
}

func byHostname() naming.Rules {
	return naming.Rules{Owner: "rack12", Template: naming.Template{Prefix: "r12-", Detail: naming.DetailHostname}}
}

// Changes of a host.
func serial(s string) func(*naming.Host)   { return func(h *naming.Host) { h.Serial = s } }
func hostname(s string) func(*naming.Host) { return func(h *naming.Host) { h.Hostname = s } }
func named(s string) func(*naming.Host)    { return func(h *naming.Host) { h.Name = s } }
func portless(h *naming.Host)              { h.PortMACs, h.PXEMACs = nil, nil }
func reserved(h *naming.Host)              { h.Reserved = true }
func locked(h *naming.Host)                { h.Locked = true }
func enrolled(h *naming.Host)              { h.ByHand, h.HasInventory = true, false }
func manageable(h *naming.Host)            { h.State = "manageable" }
func noCards(h *naming.Host)               { h.Interfaces, h.PXEInterface = nil, "" }
func inUse(h *naming.Host) { // enrolled and deployed; its inventory is not read
	h.State, h.Name, h.HasInventory, h.BMCAddress, h.Serial, h.PXEInterface, h.Interfaces = "active", "web", false, "", "", "", nil
}
func sizes(r *naming.Rules) { r.MinCPUs, r.MinMemoryMB, r.MinDiskGB = 16, 65536, 400 }
func hardware(cpus, memoryMB, diskGiB int64) func(*naming.Host) {
	return func(h *naming.Host) {
		h.CPUs, h.MemoryMB = cpus, memoryMB
		h.Disks = []naming.Disk{{Name: "/dev/sda", Bytes: 1 << 30}, {Name: "/dev/sdb", Bytes: diskGiB << 30}}
		if diskGiB == 0 {
			h.Disks = nil
		}
	}
}

func bmc(address string) func(*naming.Host) {
	return func(h *naming.Host) { h.BMCAddress = address }
}

func driverBMC(address string) func(*naming.Host) {
	return func(h *naming.Host) { h.DriverBMCs = []string{address} }
}

func marked(owner, name string) func(*naming.Host) {
	return func(h *naming.Host) { h.Owner, h.OwnerName, h.Name = owner, name, name }
}

// names returns the hosts of a plan as name=number.
func names(p naming.Plan) string {
	var all []string
	for _, n := range p.Hosts {
		all = append(all, fmt.Sprintf("%s=%d", n.Name, number(n.Host.ID)))
	}
	return strings.Join(all, " ")
}

func number(id string) (n int) {
	_, _ = fmt.Sscanf(id, "%d", &n)
	return n
}

// pending returns the pending reasons of a plan by number of the host.
func pending(p naming.Plan) map[int]string {
	all := map[int]string{}
	for id, reason := range p.Pending {
		all[number(id)] = reason
	}
	return all
}

func TestDecide(t *testing.T) {
	t.Parallel()
	uuid := func(n int) string { return found(n).ID }
	type reasons = map[int]string
	with := func(rules naming.Rules, change func(*naming.Rules)) naming.Rules {
		change(&rules)
		return rules
	}
	lost := func(h *naming.Host) {
		*h = naming.Host{
			ID: h.ID, CreatedAt: h.CreatedAt, State: h.State, PortMACs: h.PortMACs, PXEMACs: h.PXEMACs, Driver: "ipmi",
			LastError: "Inspection clean up failed: unable to power off node: IPMI call failed",
		}
	}
	append6 := func(r *naming.Rules) { r.OnCollision = naming.CollisionAppendMAC }
	for _, tt := range []struct {
		name    string
		rules   naming.Rules
		hosts   []naming.Host
		want    string
		pending reasons
	}{
		{"new machines get names", bySerial(), []naming.Host{found(1), found(2)}, "r12-SN1=1 r12-SN2=2", nil},
		{"none blocks the others", bySerial(), []naming.Host{
			found(1), found(2, serial("AB/12")), found(3, serial("")), found(4, serial("EQ")), found(5, serial("eq")),
		}, "r12-SN1=1", reasons{
			2: `serial number "AB/12" has characters`, 3: "no serial number in the inventory",
			4: `serial number "EQ" is also that of node ` + uuid(5), 5: `serial number "eq" is also that of node ` + uuid(4),
		}},
		{
			"a host without hostname waits", byHostname(),
			[]naming.Host{found(1), found(2, hostname(""))},
			"r12-node1=1",
			reasons{2: "no hostname in the inventory"},
		},
		{"those with our marker keep their names", with(byHostname(), func(r *naming.Rules) {
			r.Include, r.Exclude = []string{"none"}, []string{"SN2"}
		}), []naming.Host{
			found(1, marked("rack12", "old-1"), manageable), found(2, marked("rack12", "old-2")),
		}, "old-1=1 old-2=2", nil},
		{
			"a host renamed by hand stays where it was", bySerial(),
			[]naming.Host{found(1, marked("rack12", "r12-SN1"), named("web"))},
			"r12-SN1=1", nil,
		},
		{"both its names are taken", byHostname(), []naming.Host{
			found(1, marked("rack12", "r12-web"), named("r12-db")), found(2, hostname("web")), found(3, hostname("DB")),
		}, "r12-web=1", reasons{2: "name r12-web is taken by node " + uuid(1), 3: "name r12-DB is taken by node " + uuid(1)}},
		{"a copied marker counts once", bySerial(), []naming.Host{
			found(1, marked("rack12", "a"), named("b")), found(2, marked("rack12", "a")), found(3, marked("rack12", "")),
		}, "a=2", reasons{1: "its marker has the name a, like that of node " + uuid(2), 3: "its marker has no name"}},
		{
			"the marker of another discovery", bySerial(),
			[]naming.Host{found(1, marked("rack11", "x")), found(2)},
			"r12-SN2=2",
			reasons{1: "owned by rack11"},
		},
		{"reserved or locked", bySerial(), []naming.Host{found(1, reserved), found(2, locked)}, "", reasons{
			1: "being claimed by another run", 2: "busy: its inspection has not ended",
		}},
		{
			"named by others or not in enroll: none of our business", bySerial(),
			[]naming.Host{found(1, named("web")), found(2, manageable)},
			"", nil,
		},
		{"enrolled by hand: likewise", bySerial(), []naming.Host{found(1, enrolled), found(2)}, "r12-SN2=2", nil},
		{
			"but explained to those who ask", with(bySerial(), func(r *naming.Rules) {
				r.Include = []string{"sn1", "SN2", "SN3", "SN4", found(5).PortMACs[0]}
				r.Exclude = []string{"SN4"}
			}),
			[]naming.Host{found(1, named("web")), found(2, manageable), found(3), found(4), found(5, enrolled)},
			"r12-SN3=3",
			reasons{
				1: "it already has the name web", 2: "it is in state manageable, not enroll", 4: "it is in exclude",
				5: "it was enrolled, not discovered",
			},
		},
		{"filter", with(bySerial(), func(r *naming.Rules) {
			r.Manufacturer, r.BMC = regexp.MustCompile("^Dell"), []netip.Prefix{netip.MustParsePrefix("10.12.0.0/24")}
		}), []naming.Host{
			found(1), found(2, func(h *naming.Host) { h.Manufacturer = "HPE" }), found(3, func(h *naming.Host) { h.BMCAddress = "::/0" }),
			found(4, func(h *naming.Host) {
				h.BMCAddress = "10.13.0.1"
			}), found(5, func(h *naming.Host) { h.Manufacturer, h.Owner = "HPE", "rack11" }),
		}, "r12-SN1=1", reasons{3: "filter: the inventory has no BMC address, and filter.bmc_cidr is 10.12.0.0/24"}},
		{"filter by facts that the inventory lacks", with(bySerial(), func(r *naming.Rules) {
			r.Manufacturer, r.Product = regexp.MustCompile("^Dell"), regexp.MustCompile("^(R6.*)?$")
			r.BMC = []netip.Prefix{netip.MustParsePrefix("10.12.0.0/24")}
		}), []naming.Host{
			found(1, func(h *naming.Host) { h.Manufacturer = "" }), found(2, func(h *naming.Host) { h.Product = "" }),
			found(3, func(h *naming.Host) { h.Manufacturer, h.BMCAddress = "HPE", "" }),
			found(4, named("web"), func(h *naming.Host) {
				h.BMCAddress = ""
			}), found(5, enrolled, func(h *naming.Host) { h.BMCAddress = "" }),
			found(6, marked("rack11", "x"), func(h *naming.Host) { h.BMCAddress = "" }),
			found(7, portless, func(h *naming.Host) { h.BMCAddress, h.PXEInterface, h.Interfaces = "", found(2).PXEInterface, nil }),
			found(8, func(h *naming.Host) { h.BMCAddress, h.HasInventory = "", false }),
		}, "r12-SN2=2", reasons{
			1: `filter: the inventory has no manufacturer, and filter.manufacturer is "^Dell"`,
			7: "duplicate of " + uuid(2),
		}},
		{"filter of product and driver, asked for", with(bySerial(), func(r *naming.Rules) {
			r.Product, r.Driver, r.Include = regexp.MustCompile("R7"), regexp.MustCompile("fake"), []string{"SN1", "SN2", "SN3"}
		}), []naming.Host{
			found(1), found(2, func(h *naming.Host) {
				h.Product = "R740"
			}), found(3, func(h *naming.Host) { h.Product, h.Driver = "R7", "ipmi" }),
		}, "r12-SN2=2", reasons{1: `filter: product is "R640"`, 3: `filter: driver is "ipmi"`}},
		{
			"include and exclude by serial, MAC, UUID", with(bySerial(), func(r *naming.Rules) {
				r.Include = []string{"sn1", "52-54-00-00-00-02", strings.ToUpper(uuid(3)), "SN4"}
				r.Exclude = []string{"52:54:00:00:00:04"}
			}),
			[]naming.Host{found(1), found(2), found(3), found(4), found(5)},
			"r12-SN1=1 r12-SN2=2 r12-SN3=3",
			reasons{4: "it is in exclude"},
		},
		{"an empty include takes nothing", with(bySerial(), func(r *naming.Rules) {
			r.Include = []string{}
		}), []naming.Host{found(1)}, "", nil},
		{
			"a given name wins over the template", with(bySerial(), func(r *naming.Rules) {
				r.Names = map[string]string{"sn1": "slot-01", "52:54:00:00:00:02": "slot-02", "SN3": "a", "52:54:00:00:00:03": "b"}
			}),
			[]naming.Host{found(1), found(2, serial("AB/12")), found(3), found(4)},
			"r12-SN4=4 slot-01=1 slot-02=2",
			reasons{3: "names has two names for it, a and b"},
		},
		{
			"a given name for a serial number that two have", with(byHostname(), func(r *naming.Rules) {
				r.Names = map[string]string{"EQ": "slot-01"}
			}),
			[]naming.Host{found(1, serial("EQ")), found(2, serial("EQ"))},
			"",
			reasons{1: `"EQ" in names is also that of node`, 2: `"EQ" in names is also that of node`},
		},
		{
			"a given name settles who is who", with(bySerial(), func(r *naming.Rules) {
				r.Names = map[string]string{"52:54:00:00:00:01": "slot-01"}
			}),
			[]naming.Host{found(1, serial("EQ")), found(2, serial("EQ"))},
			"r12-EQ=2 slot-01=1", nil,
		},
		{
			"a serial number that a host of ours has", bySerial(),
			[]naming.Host{found(1, marked("rack12", "r12-SN1")), found(2, serial("SN1"))},
			"r12-SN1=1",
			reasons{
				2: `serial number "SN1" is also that of node r12-SN1; give it a name of its own in names, by its MAC address, or set on_collision = "append-mac"`,
			},
		},
		{
			"a serial number that a machine has which the rules do not take", with(bySerial(), func(r *naming.Rules) {
				r.Exclude = []string{"52:54:00:00:00:01"}
			}),
			[]naming.Host{found(1, serial("SN1")), found(2, serial("SN1"))},
			"",
			reasons{2: `serial number "SN1" is also that of node`},
		},
		{
			"equal hostnames: the oldest wins", byHostname(),
			[]naming.Host{found(1, hostname("A")), found(2, hostname("a")), found(3, hostname("a"))},
			"r12-A=1",
			reasons{2: "name r12-a is taken by node " + uuid(1), 3: "name r12-a is taken by node " + uuid(1)},
		},
		{"equal age: the lower UUID wins", byHostname(), []naming.Host{
			found(2, hostname("a"), func(h *naming.Host) {
				h.CreatedAt = noon
			}), found(1, hostname("a"), func(h *naming.Host) { h.CreatedAt = noon }),
		}, "r12-a=1", reasons{2: "is taken"}},
		{
			"a node's name always wins, and in any case", byHostname(),
			[]naming.Host{found(1, hostname("a")), found(9, named("R12-A"), manageable)},
			"",
			reasons{1: "name r12-a is taken by node " + uuid(9)},
		},
		{
			"append-mac", with(byHostname(), append6),
			[]naming.Host{found(1, hostname("a")), found(2, hostname("a")), found(9, named("r12-b"))},
			"r12-a=1 r12-a-000002=2", nil,
		},
		{
			"append-mac for serial numbers that two have", with(bySerial(), append6),
			[]naming.Host{found(1, serial("EQ")), found(2, serial("EQ")), found(3, serial("EQ"), func(h *naming.Host) {
				h.PXEInterface, h.Interfaces, h.PortMACs, h.PXEMACs, h.BMCAddress = "", nil, nil, nil, ""
			})},
			"r12-EQ-000001=1 r12-EQ-000002=2",
			reasons{3: "and it has no MAC address to append"},
		},
		{
			"append-mac changes no given name that a node has", with(bySerial(), func(r *naming.Rules) {
				append6(r)
				r.Names = map[string]string{"52:54:00:00:00:01": "r12-SN9"}
			}),
			[]naming.Host{found(1), found(9, marked("rack12", "r12-SN9"))},
			"r12-SN9=9",
			reasons{1: "name r12-SN9 is taken by node " + uuid(9) + "; give it a name of its own in names, by its MAC address"},
		},
		{
			"append-mac changes no given name for a serial number that two have", with(bySerial(), func(r *naming.Rules) {
				append6(r)
				r.Names = map[string]string{"EQ": "slot-01"}
			}),
			[]naming.Host{found(1, serial("EQ")), found(2, serial("EQ"))},
			"",
			reasons{1: `"EQ" in names is also that of node ` + uuid(2) + "; give it", 2: `"EQ" in names is also that of node ` +
				uuid(1) + "; give it"},
		},
		{
			"append-mac does not help", with(byHostname(), append6),
			[]naming.Host{found(1, hostname("a")), found(2, hostname("a")), found(3, hostname("a-000002"))},
			"r12-a=1 r12-a-000002=3",
			reasons{2: "with its MAC address: name r12-a-000002 is taken by node " + uuid(3)},
		},
		{
			"max_hosts counts ours, the oldest come first", with(bySerial(), func(r *naming.Rules) { r.MaxHosts = 2 }),
			[]naming.Host{found(3), found(2), found(9, marked("rack12", "x"))},
			"r12-SN2=2 x=9",
			reasons{3: "max_hosts reached"},
		},
		{
			"max_hosts lowered takes nothing away", with(bySerial(), func(r *naming.Rules) { r.MaxHosts = 1 }),
			[]naming.Host{found(1, marked("rack12", "x")), found(2, marked("rack12", "y"))},
			"x=1 y=2", nil,
		},
		{
			"a duplicate without ports", bySerial(),
			[]naming.Host{found(1, portless), found(1, func(h *naming.Host) { h.ID, h.CreatedAt = uuid(2), noon.Add(time.Hour) })},
			"r12-SN1=2",
			reasons{1: "duplicate of " + uuid(2)},
		},
		{
			"a duplicate of a machine that is in use", bySerial(),
			[]naming.Host{found(1, portless), found(1, manageable, func(h *naming.Host) { h.ID = uuid(2); h.HasInventory = false })},
			"",
			reasons{1: "duplicate of " + uuid(2)},
		},
		{
			"duplicates without any port: the oldest stands", bySerial(),
			[]naming.Host{found(1, portless), found(1, portless, func(h *naming.Host) { h.ID = uuid(2) })},
			"r12-SN1=1",
			reasons{2: "duplicate of " + uuid(1)},
		},
		{
			"a duplicate of a locked node", bySerial(),
			[]naming.Host{found(1, portless), found(1, portless, locked, func(h *naming.Host) { h.ID = uuid(2) })},
			"",
			reasons{1: "duplicate of " + uuid(2), 2: "busy"},
		},
		{
			"a duplicate by serial number and BMC", bySerial(),
			[]naming.Host{found(1), found(1, portless, func(h *naming.Host) { h.ID, h.PXEInterface, h.Interfaces = uuid(2), "", nil })},
			"r12-SN1=1",
			reasons{2: "duplicate of " + uuid(1)},
		},
		{"a duplicate with a share of the ports", bySerial(), []naming.Host{
			found(1, func(h *naming.Host) {
				h.PXEInterface = ""
				h.Interfaces = append(h.Interfaces, naming.Interface{MAC: mac2})
			}),
			found(1, func(h *naming.Host) {
				h.PXEInterface, h.ID, h.PortMACs, h.PXEMACs = "", uuid(2), []string{mac2}, nil
				h.Interfaces = append(h.Interfaces, naming.Interface{MAC: mac2})
			}),
		}, "r12-SN1=1", reasons{2: "duplicate of " + uuid(1)}},
		{
			"other network cards, but the same serial number and BMC", byHostname(),
			[]naming.Host{found(1, serial("C"), bmc("10.0.0.1")), found(2, serial("C"), bmc("10.0.0.1"))},
			"r12-node1=1",
			reasons{2: "duplicate of " + uuid(1)},
		},
		{
			"sleds of a chassis with one serial number", byHostname(),
			[]naming.Host{found(1, serial("C")), found(2, serial("C"))},
			"r12-node1=1 r12-node2=2", nil,
		},
		{
			"the BMC of an enrolled machine without ports", bySerial(),
			[]naming.Host{found(1, inUse, portless, driverBMC("10.0.0.5")), found(2, bmc("10.0.0.5")), found(3, bmc("::ffff:10.0.0.5"))},
			"",
			reasons{2: "its BMC address 10.0.0.5 is that of node web", 3: "its BMC address 10.0.0.5 is that of node web"},
		},
		{
			"the BMC of an enrolled machine with other network cards", bySerial(),
			[]naming.Host{found(1, inUse, driverBMC("10.0.0.5")), found(2, bmc("10.0.0.5"))},
			"",
			reasons{2: "its BMC address 10.0.0.5 is that of node web"},
		},
		{
			"the BMC of an enrolled machine over IPv6", bySerial(),
			[]naming.Host{found(1, inUse, portless, driverBMC("2001:db8::5")), found(2, func(h *naming.Host) {
				h.BMCv6Address = "2001:DB8:0::5"
			})},
			"",
			reasons{2: "its BMC address 2001:db8::5 is that of node web"},
		},
		{
			"the BMC of a machine of this discovery", bySerial(),
			[]naming.Host{found(1, marked("rack12", "r12-SN1"), driverBMC("10.0.0.5")), found(2, bmc("10.0.0.5"))},
			"r12-SN1=1",
			reasons{2: "its BMC address 10.0.0.5 is that of node r12-SN1"},
		},
		{
			"another blade behind a BMC that several enrolled nodes share", bySerial(),
			[]naming.Host{
				found(1, inUse, driverBMC("10.0.0.5")), found(2, inUse, driverBMC("10.0.0.5"), named("db")),
				found(3, bmc("10.0.0.5")),
			},
			"r12-SN3=3", nil,
		},
		{
			"a shared BMC, and a node that nothing tells apart", bySerial(),
			[]naming.Host{found(1, inUse, driverBMC("10.0.0.5")), found(2, inUse, portless, driverBMC("10.0.0.5"), named("db"), serial(""),
				noCards), found(3, bmc("10.0.0.5"))},
			"",
			reasons{3: "its BMC address 10.0.0.5 is that of node db"},
		},
		{
			"the address that BMCs have when they leave the factory", bySerial(),
			[]naming.Host{found(1, bmc("192.168.0.120")), found(2, bmc("192.168.0.120"))},
			"r12-SN1=1 r12-SN2=2", nil,
		},
		{
			"one BMC, and no serial numbers", byHostname(),
			[]naming.Host{found(1, bmc("10.0.0.5"), serial("None")), found(2, bmc("10.0.0.5"))},
			"r12-node1=1",
			reasons{2: "its BMC address 10.0.0.5 is that of node " + uuid(1)},
		},
		{
			"large enough", with(bySerial(), sizes),
			[]naming.Host{found(1, hardware(16, 65536, 400))},
			"r12-SN1=1", nil,
		},
		{
			"too small", with(bySerial(), sizes),
			[]naming.Host{found(1, hardware(15, 65536, 400)), found(2, hardware(16, 65535, 400)), found(3, hardware(16, 65536, 399))},
			"", nil,
		},
		{
			"too small, and on the delivery note", with(with(bySerial(), sizes), func(r *naming.Rules) {
				r.Include = []string{"SN1", "SN2", "SN3"}
			}),
			[]naming.Host{found(1, hardware(15, 65536, 400)), found(2, hardware(16, 65535, 400)), found(3, hardware(16, 65536, 399))},
			"",
			reasons{
				1: "filter: number of CPUs is 15, and min_cpus is 16", 2: "filter: memory in MiB is 65535, and min_memory_mb is 65536",
				3: "filter: size of the largest disk in GiB is 399, and min_disk_gb is 400",
			},
		},
		{
			"sizes that are not known", with(bySerial(), sizes),
			[]naming.Host{
				found(1, hardware(0, 65536, 400)), found(2, hardware(16, 0, 400)), found(3, hardware(16, 65536, 0)),
				found(4, hardware(16, 65536, 400), func(h *naming.Host) { h.HasInventory = false }),
			},
			"",
			reasons{
				1: "filter: the inventory has no number of CPUs, and filter.min_cpus is 16",
				2: "filter: the inventory has no memory in MiB, and filter.min_memory_mb is 65536",
				3: "filter: the inventory has no size of the largest disk in GiB, and filter.min_disk_gb is 400",
				4: "filter: it has no inventory, and filter.min_cpus is 16",
			},
		},
		{
			"the address between a BMC and its host", byHostname(),
			[]naming.Host{
				found(1, bmc("169.254.0.3"), serial("")), found(2, bmc("169.254.0.3"), serial("")),
				found(3, bmc("0.0.0.0"), serial("")), found(4, bmc("0.0.0.0"), serial("")),
			},
			"r12-node1=1 r12-node2=2 r12-node3=3 r12-node4=4", nil,
		},
		{"an address that every BMC lends its host makes no duplicates", bySerial(), []naming.Host{
			found(1, func(h *naming.Host) {
				h.Interfaces = append(h.Interfaces, naming.Interface{Name: "usb0", MAC: mac1})
			}),
			found(2, func(h *naming.Host) {
				h.Interfaces = append(h.Interfaces, naming.Interface{Name: "usb0", MAC: mac1})
			}),
		}, "r12-SN1=1 r12-SN2=2", nil},
		{"a known MAC address is never taken twice", bySerial(), []naming.Host{
			found(1, named("web"), manageable), found(2, func(h *naming.Host) { h.PXEInterface = found(1).PXEInterface }),
			found(3, marked("rack11", "db")), found(4, func(h *naming.Host) { h.PortMACs = append(h.PortMACs, found(3).PortMACs...) }),
		}, "", reasons{
			2: "its MAC address 52:54:00:00:00:01 belongs to web", 3: "owned by rack11",
			4: "its MAC address 52:54:00:00:00:03 belongs to db",
		}},
		{
			"a lost inventory is explained, whatever the filter", with(bySerial(), func(r *naming.Rules) {
				r.Manufacturer = regexp.MustCompile("Dell")
			}),
			[]naming.Host{found(1, lost), found(2)},
			"r12-SN2=2",
			reasons{1: "[inspector]power_off = false"},
		},
		{
			"but not of drivers that we do not take", with(bySerial(), func(r *naming.Rules) { r.Driver = regexp.MustCompile("fake") }),
			[]naming.Host{found(1, lost)},
			"", nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := tt.rules.Validate(); err != nil {
				t.Fatal(err)
			}
			plan := tt.rules.Decide(tt.hosts)
			if got := names(plan); got != tt.want || plan.Err != nil {
				t.Errorf("hosts = %s, want %s; error %v", got, tt.want, plan.Err)
			}
			got := pending(plan)
			if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(tt.pending))) {
				t.Fatalf("pending = %v, want %v", got, tt.pending)
			}
			for n, want := range tt.pending {
				if !strings.Contains(got[n], want) {
					t.Errorf("pending %d: %s, want %s", n, got[n], want)
				}
			}
		})
	}
}

func TestDecide_sixPostsOfOneMachineAreOneHost(t *testing.T) {
	t.Parallel()
	var posts []naming.Host
	for n := range 6 {
		posts = append(posts, found(1, portless, func(h *naming.Host) { h.ID = found(n + 1).ID }))
	}
	posts[3].PortMACs = []string{"52:54:00:00:00:01"}
	plan := bySerial().Decide(posts)
	for range 2 { // before and after the host has its name
		if names(plan) != "r12-SN1=4" || len(plan.Pending) != 5 {
			t.Fatalf("hosts %s, pending %v", names(plan), plan.Pending)
		}
		for id, reason := range plan.Pending {
			if reason != "duplicate of "+posts[3].ID {
				t.Errorf("%s: %s", id, reason)
			}
		}
		plan = bySerial().Decide(carriedOut(posts, plan))
	}
}

func TestDecide_lateMachinesArePendingOnlyIfALaterPlanDoesNotTakeThem(t *testing.T) {
	t.Parallel()
	rules := bySerial()
	rules.Before, rules.OnCollision = noon.Add(3*time.Second), naming.CollisionError
	hosts := []naming.Host{found(1), found(2, serial("None")), found(3), found(4, serial("None")), found(5, serial("SN1"))}
	for _, when := range []string{"before", "after"} { // the hosts have their names
		plan := rules.Decide(hosts)
		if got := pending(plan); names(plan) != "r12-SN1=1" || plan.Err != nil || len(got) != 3 ||
			got[2] != got[4] || !strings.Contains(got[5], `serial number "SN1" is also that of node `) ||
			strings.Contains(got[5], found(1).ID) != (when == "before") {
			t.Errorf("%s: hosts %s, pending %v, error %v", when, names(plan), got, plan.Err)
		}
		hosts = carriedOut(hosts, plan)
	}
}

func TestDecide_collisionError(t *testing.T) {
	t.Parallel()
	rules := bySerial()
	rules.OnCollision = naming.CollisionError
	plan := rules.Decide([]naming.Host{found(1), found(2, serial("EQ")), found(3, serial("EQ"))})
	if names(plan) != "r12-SN1=1" || len(plan.Pending) != 2 {
		t.Errorf("hosts %s, pending %v", names(plan), plan.Pending)
	}
	for _, n := range []int{2, 3} {
		if plan.Err == nil || !strings.Contains(plan.Err.Error(), "node "+found(n).ID+`: serial number "EQ" is also that of node`) {
			t.Errorf("error %v does not name host %d", plan.Err, n)
		}
	}
}

func TestDecide_newTemplateKeepsNames(t *testing.T) {
	t.Parallel()
	hosts := []naming.Host{found(1), found(2)}
	hosts = carriedOut(hosts, bySerial().Decide(hosts))
	plan := byHostname().Decide(append(hosts, found(3)))
	if got := names(plan); got != "r12-SN1=1 r12-SN2=2 r12-node3=3" {
		t.Errorf("hosts = %s", got)
	}
}

func TestRules_invalidAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		change func(*naming.Rules)
		want   string
	}{
		{func(*naming.Rules) {}, ""},
		{func(r *naming.Rules) { r.Names = map[string]string{"SN1": "a", "SN2": "b"} }, ""},
		{func(r *naming.Rules) { r.Owner = "" }, "name of the discovery: a name cannot be empty"},
		{func(r *naming.Rules) { r.Template.Detail = "" }, "name template: hardware detail"},
		{func(r *naming.Rules) { r.BMC = []netip.Prefix{{}} }, "not a valid prefix"},
		{func(r *naming.Rules) { r.Include = []string{"a", " "} }, "include: an empty entry"},
		{func(r *naming.Rules) { r.Exclude = []string{""} }, "exclude: an empty entry"},
		{func(r *naming.Rules) { r.MaxHosts = -1 }, "max_hosts is -1"},
		{func(r *naming.Rules) { r.OnCollision = "panic" }, "is not one of skip, append-mac, error"},
		{func(r *naming.Rules) { r.Names = map[string]string{"": "a"} }, "an empty key"},
		{func(r *naming.Rules) { r.Names = map[string]string{"SN1": "a b"} }, "has characters other than"},
		{func(r *naming.Rules) { r.Names = map[string]string{"SN1": id2} }, "looks like a UUID"},
		{func(r *naming.Rules) { r.Names = map[string]string{"SN1": "a", "SN2": "A"} }, `"SN1" and "SN2" have the same name`},
		{func(r *naming.Rules) { r.Names = map[string]string{mac1: "a", "52-54-00-AA-BB-01": "b"} }, "are the same"},
	} {
		rules := bySerial()
		tt.change(&rules)
		err := rules.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Validate = %v, want %q", err, tt.want)
		}
	}
}

// carriedOut returns the fleet after the plan: new hosts have their name and marker.
func carriedOut(hosts []naming.Host, plan naming.Plan) []naming.Host {
	after := slices.Clone(hosts)
	for _, n := range plan.Hosts {
		for i := range after {
			if n.New && after[i].ID == n.Host.ID {
				after[i].Owner, after[i].OwnerName, after[i].Name = "rack12", n.Name, n.Name
			}
		}
	}
	return after
}

// fleet returns up to 12 nodes with all kinds of collisions.
func fleet(random *rand.Rand) []naming.Host {
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	mac := func() string {
		return pick("", mac1, mac2, mac3, "52:54:00:cc:bb:01", "52-54-00-AA-BB-02", "00:00:00:00:00:00")
	}
	var hosts []naming.Host
	for n := range random.IntN(12) {
		h := found(n, serial(pick("a", "A", "b", "a-aabb01", "0000", "x/y", "", id1)),
			hostname(pick("a", "B", "b", "a-aabb02", "localhost", "größe", "")))
		h.ID = fmt.Sprintf("%08d-0000-4000-8000-%012d", random.IntN(1e8), n)
		h.CreatedAt = noon.Add(time.Duration(random.IntN(3)) * time.Second)
		h.PortMACs, h.PXEMACs, h.PXEInterface, h.Interfaces = nil, nil, mac(), nil
		for range random.IntN(3) {
			h.PortMACs = append(h.PortMACs, mac())
		}
		for range random.IntN(3) {
			h.Interfaces = append(h.Interfaces, naming.Interface{
				Name: pick("eno1", "eno2"), MAC: mac(),
				IPv4: pick("", "10.0.0.1", "10.0.0.2"), IPv6: pick("", "fe80::1", "2001:db8::"),
			})
		}
		h.BMCAddress = pick("", "10.12.0.1", "10.12.0.2")
		switch random.IntN(10) {
		case 0:
			h.Name = pick("r12-a", "R12-B", "web")
		case 1:
			h.Owner, h.OwnerName = pick("rack12", "rack11"), pick("r12-a", "R12-A", "old", "")
			h.Name = pick(h.OwnerName, h.OwnerName, "web")
		case 2:
			h.State = "manageable"
		case 3:
			h.Reserved = true
		case 4:
			h.Locked = true
		case 5:
			h.HasInventory, h.Serial, h.Hostname, h.LastError = false, "", "", pick("", "Inspection clean up failed: unable to power off")
		}
		hosts = append(hosts, h)
	}
	return hosts
}

func randomRules(random *rand.Rand) naming.Rules {
	rules := naming.Rules{Owner: "rack12", MaxHosts: max(0, random.IntN(8)-3)}
	rules.Template = naming.Template{Prefix: "r12-", Detail: naming.Detail(naming.Details()[random.IntN(5)])}
	if random.IntN(3) == 0 {
		rules.Template.Style = naming.StyleDNS
	}
	rules.OnCollision = naming.OnCollision(naming.OnCollisions()[random.IntN(3)])
	if random.IntN(3) == 0 {
		rules.Names = map[string]string{"a": "r12-b", mac1: "r12-a", "b": "slot-1"}
	}
	if random.IntN(4) == 0 {
		rules.Exclude = []string{"b", mac3}
	}
	if random.IntN(4) == 0 {
		rules.Include = []string{"a", mac2}
	}
	return rules
}

func FuzzDecide(f *testing.F) {
	for seed := range uint64(3000) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		hosts, rules := fleet(random), randomRules(random)
		if err := rules.Validate(); err != nil {
			t.Fatal(err)
		}
		plan := rules.Decide(hosts)
		holds(t, rules, hosts, plan)

		shuffled := slices.Clone(hosts)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for i := range shuffled {
			shuffled[i].Interfaces, shuffled[i].PortMACs = slices.Clone(shuffled[i].Interfaces), slices.Clone(shuffled[i].PortMACs)
			slices.Reverse(shuffled[i].Interfaces)
			slices.Reverse(shuffled[i].PortMACs)
		}
		other := rules.Decide(shuffled)
		if names(other) != names(plan) || !reflect.DeepEqual(other.Pending, plan.Pending) || fmt.Sprint(other.Err) != fmt.Sprint(plan.Err) {
			t.Fatalf("in another order: %s %v %v, not %s %v %v", names(other), other.Pending, other.Err, names(plan),
				plan.Pending, plan.Err)
		}

		after := rules.Decide(carriedOut(hosts, plan))
		if names(after) != names(plan) || slices.ContainsFunc(after.Hosts, func(n naming.Named) bool { return n.New }) {
			t.Fatalf("the plan after %s %v is %s %v", names(plan), plan.Pending, names(after), after.Pending)
		}
		rules.Template.Detail, rules.Template.Prefix, rules.MaxHosts = naming.DetailProvisioningID, "new-", len(plan.Hosts)
		if another := rules.Decide(carriedOut(hosts, plan)); len(plan.Hosts) > 0 && names(another) != names(plan) {
			t.Fatalf("with another template %s became %s", names(plan), names(another))
		}
	})
}

// holds checks the invariants of every plan.
func holds(t *testing.T, rules naming.Rules, hosts []naming.Host, plan naming.Plan) {
	t.Helper()
	seen, known := map[string]string{}, map[string]naming.Host{}
	for _, h := range hosts {
		known[h.ID] = h
		if h.Name != "" {
			seen[strings.ToLower(h.Name)] = h.ID
		}
	}
	macs := map[string]string{}
	for _, n := range plan.Hosts {
		if _, both := plan.Pending[n.Host.ID]; both {
			t.Errorf("%s is a host and pending", n.Host.ID)
		}
		h := known[n.Host.ID]
		if !n.New {
			if h.Owner != rules.Owner || n.Name != cmp.Or(h.OwnerName, h.Name) {
				t.Errorf("%+v is not ours under this name", n)
			}
			continue
		}
		if h.State != naming.StateEnroll || h.Name != "" || h.Owner != "" || h.Reserved || h.Locked {
			t.Errorf("%+v is not free", h)
		}
		if !legal(n.Name, rules.Template.Style) {
			t.Errorf("%q is not a legal name", n.Name)
		}
		if holder, twice := seen[strings.ToLower(n.Name)]; twice {
			t.Errorf("%s gets the name %s of %s", n.Host.ID, n.Name, holder)
		}
		seen[strings.ToLower(n.Name)] = n.Host.ID
		if mac := h.BootMAC(); mac != "" {
			if other, twice := macs[mac]; twice {
				t.Errorf("%s is taken as %s and as %s", mac, other, n.Host.ID)
			}
			macs[mac] = n.Host.ID
		}
	}
	ours := 0
	unique := map[string]bool{}
	for _, n := range plan.Hosts {
		unique[strings.ToLower(n.Name)] = true
		if !n.New {
			ours++
		}
	}
	if len(unique) != len(plan.Hosts) {
		t.Errorf("names are not unique: %s", names(plan))
	}
	if rules.MaxHosts > 0 && len(plan.Hosts) > max(rules.MaxHosts, ours) {
		t.Errorf("%d hosts, the most is %d", len(plan.Hosts), rules.MaxHosts)
	}
	for id, reason := range plan.Pending {
		if reason == "" {
			t.Errorf("%s is pending without a reason", id)
		}
	}
}
