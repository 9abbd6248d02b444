package api

import (
	"fmt"
	"strconv"
	"strings"
)

// Microversion is the minor number of an API version: 82 is 1.82. Ironic's major number has always been 1.
type Microversion int

// newest is the version of Ironic 39.0, the newest that this provider is tested with. The client uses this version with newer
// servers, and the highest common version with older ones.
const newest Microversion = 115

// Oldest and Newest are the versions of the oldest and the newest Ironic that this provider is tested with.
const (
	Oldest Microversion = 82
	Newest              = newest
)

// releases are Ironic's releases with the API versions that they support, the newest first: RELEASE_MAPPING of Ironic 39.0.
var releases = []struct {
	since Microversion
	name  string
}{
	{115, "39.0 (2026.2)"},
	{113, "38.0"},
	{112, "36.0 or 37.0"},
	{111, "35.0 (2026.1)"},
	{109, "34.0"},
	{104, "33.0"},
	{101, "32.0 (2025.2)"},
	{99, "30.0 or 31.0"},
	{96, "29.0 (2025.1)"},
	{95, "28.0"},
	{94, "27.0"},
	{93, "26.1 (2024.2)"},
	{91, "25.0 or 26.0"},
	{90, "24.1 (2024.1)"},
	{89, "24.0"},
	{88, "23.1"},
	{87, "23.0 (2023.2)"},
	{86, "22.1"},
	{83, "22.0"},
	{82, "21.4 (2023.1)"},
	{81, "21.3"},
	{80, "21.1 or 21.2"},
	{79, "21.0"},
	{78, "18.2 to 20.2"},
}

// Release names the release of a server by the highest version that it supports.
func (v Microversion) Release() string {
	for _, r := range releases {
		switch {
		case v == r.since:
			return r.name
		case v > r.since && r.since == newest:
			return "newer than " + r.name
		case v > r.since:
			return "between two releases, after " + r.name
		}
	}
	return "older than 18.2"
}

// ParseMicroversion parses a version such as "1.82".
func ParseMicroversion(s string) (Microversion, error) {
	major, minor, ok := strings.Cut(s, ".")
	n, err := strconv.Atoi(minor)
	if !ok || major != "1" || err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a microversion of Ironic, such as \"1.82\"", s)
	}
	return Microversion(n), nil
}

// String returns "1.82" for 82.
func (v Microversion) String() string { return "1." + strconv.Itoa(int(v)) }

// The first API version of each feature that not all supported versions have, and the feature (reference/ironic.md#microversions).
const (
	VersionAdopt            Microversion = 17  // the verb adopt
	VersionPortGroups       Microversion = 26  // port groups
	VersionSoftPower        Microversion = 27  // asking an operating system to shut down
	VersionVIFs             Microversion = 28  // VIFs of a node
	VersionNMI              Microversion = 29  // non-maskable interrupts
	VersionPhysicalNetwork  Microversion = 34  // physical_network of a port
	VersionRebuildDrive     Microversion = 35  // a config drive for a rebuild
	VersionRescue           Microversion = 38  // rescue mode
	VersionBIOS             Microversion = 40  // BIOS settings
	VersionDetail           Microversion = 43  // ?detail=true of a list
	VersionConductorGroup   Microversion = 46  // conductor_group of a node, the newest field of all polls
	VersionOwner            Microversion = 50  // owner of a node
	VersionAllocations      Microversion = 52  // allocations
	VersionSmartNIC         Microversion = 53  // is_smartnic of a port
	VersionDeployTemplates  Microversion = 55  // deploy templates
	VersionAllocationChange Microversion = 57  // other name and extra of an allocation
	VersionBackfill         Microversion = 58  // an allocation of a node that runs already
	VersionAllocationOwner  Microversion = 60  // owner of an allocation
	VersionRetired          Microversion = 61  // retired of a node, and the filter for it: quarantine
	VersionIndicators       Microversion = 63  // indicators of a machine
	VersionLessee           Microversion = 65  // lessee of a node
	VersionVIFPort          Microversion = 67  // a VIF that names its port
	VersionNoRamdisk        Microversion = 70  // disable_ramdisk of a manual cleaning
	VersionBIOSRegistry     Microversion = 74  // what a BIOS accepts
	VersionBootMode         Microversion = 76  // boot mode and secure boot
	VersionHistory          Microversion = 78  // the history of a node: why an operation failed
	VersionInventory        Microversion = 81  // the inventory of a node: requirements
	VersionShard            Microversion = 82  // shard of a node
	VersionParentNode       Microversion = 83  // parent_node of a node
	VersionUnhold           Microversion = 85  // the verb unhold
	VersionFirmware         Microversion = 86  // firmware components
	VersionService          Microversion = 87  // the verb service
	VersionPortName         Microversion = 88  // name of a port
	VersionVirtualMedia     Microversion = 89  // virtual media of a running machine: another live ISO
	VersionRunbooks         Microversion = 92  // runbooks
	VersionInspectionRules  Microversion = 96  // inspection rules
	VersionPortDescription  Microversion = 97  // description of a port
	VersionServiceAbort     Microversion = 97  // the verb abort in state service failed
	VersionPortVendor       Microversion = 100 // vendor of a port
	VersionPortCategory     Microversion = 101 // category of a port
	VersionCleaningRunbook  Microversion = 101 // of Ironic 2025.2, which cleans by the runbook of a node
	VersionGroupNetwork     Microversion = 102 // physical_network of a port group
	VersionGroupCategory    Microversion = 103 // category of a port group
	VersionInstanceName     Microversion = 104 // instance_name of a node
	VersionServiceRamdisk   Microversion = 108 // disable_ramdisk of a service
	VersionHealth           Microversion = 109 // health of a node
	VersionAbortDeploy      Microversion = 110 // the verb abort in state wait call-back
	VersionRunbookTraits    Microversion = 112 // description and traits of a runbook, and a name that is no trait
)

// Versions by which the client knows how a server behaves that has them as its highest.
const (
	// LastISORebuild is of Ironic 26.0. Later ones, up to at least 39, answer a rebuild without image_source with 500
	// (reference/live-iso.md#rebuilding-without-an-image).
	LastISORebuild Microversion = 91

	FirstWithSwitchPorts Microversion = 111 // of Ironic 35, the first with the network interface ironic-networking
	StepsAfterRAID       Microversion = 115 // of the first server that is known to run other steps after RAID
	LastWithBondMode1ad  Microversion = 82  // names the bond mode of LACP so in its schema (reference/ironic.md#network-data)
	FirstWithBondMode3ad Microversion = 115 // names it otherwise
	// LastKeepingDrives is of the last servers that write network data of config drives as it is given
	// (reference/network-data.md#config-drives-that-ironic-replaces).
	LastKeepingDrives Microversion = 82
)
