package ironic

// The first API version of each feature that not all supported versions have, and the feature (reference/ironic.md#microversions).
const (
	VersionAdopt            Microversion = 17  // the verb adopt
	VersionResourceClass    Microversion = 21  // resource_class of a node
	VersionPortGroups       Microversion = 26  // port groups
	VersionSoftPower        Microversion = 27  // asking an operating system to shut down
	VersionVIFs             Microversion = 28  // VIFs of a node
	VersionNMI              Microversion = 29  // non-maskable interrupts
	VersionPhysicalNetwork  Microversion = 34  // physical_network of a port
	VersionRebuildDrive     Microversion = 35  // a config drive for a rebuild
	VersionTraits           Microversion = 37  // traits of a node
	VersionRescue           Microversion = 38  // rescue mode
	VersionBIOS             Microversion = 40  // BIOS settings
	versionDetail           Microversion = 43  // ?detail=true of a list
	VersionConductorGroup   Microversion = 46  // conductor_group of a node, the newest field of all polls
	VersionAutomatedClean   Microversion = 47  // automated_clean of a node
	VersionProtected        Microversion = 48  // protected of a node
	VersionOwner            Microversion = 50  // owner of a node
	VersionDescription      Microversion = 51  // description of a node
	VersionAllocations      Microversion = 52  // allocations
	VersionSmartNIC         Microversion = 53  // is_smartnic of a port
	VersionDeployTemplates  Microversion = 55  // deploy templates
	VersionBuiltDrive       Microversion = 56  // a config drive that Ironic builds
	VersionAllocationChange Microversion = 57  // other name and extra of an allocation
	VersionBackfill         Microversion = 58  // an allocation of a node that runs already
	VersionVendorData       Microversion = 59  // vendor_data of a config drive
	VersionAllocationOwner  Microversion = 60  // owner of an allocation
	VersionRetired          Microversion = 61  // retired of a node, and the filter for it: quarantine
	VersionLessee           Microversion = 65  // lessee of a node
	VersionNetworkData      Microversion = 66  // network_data of a node
	VersionVIFPort          Microversion = 67  // a VIF that names its port
	VersionDeploySteps      Microversion = 69  // steps of a deployment
	VersionNoRamdisk        Microversion = 70  // disable_ramdisk of a manual cleaning
	versionBIOSRegistry     Microversion = 74  // what a BIOS accepts
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
	VersionDisablePowerOff  Microversion = 95  // disable_power_off of a node
	VersionInspectionRules  Microversion = 96  // inspection rules
	VersionPortDescription  Microversion = 97  // description of a port
	VersionServiceAbort     Microversion = 97  // the verb abort in state service failed
	VersionPortVendor       Microversion = 100 // vendor of a port
	VersionPortCategory     Microversion = 101 // category of a port
	VersionServiceRamdisk   Microversion = 108 // disable_ramdisk of a service
	VersionAbortDeploy      Microversion = 110 // the verb abort in state wait call-back
	VersionRunbookTraits    Microversion = 112 // description and traits of a runbook, and a name that is no trait
)

// Versions by which the client knows how a server behaves that has them as its highest.
const (
	LastISORebuild       Microversion = 91  // of Ironic 26.0. Later ones, up to at least 39, answer a rebuild without image_source with 500 (reference/live-iso.md#rebuilding-without-an-image)
	StepsAfterRAID       Microversion = 115 // of the first server that is known to run other steps after RAID
	lastWithBondMode1ad  Microversion = 82  // names the bond mode of LACP so in its schema (reference/ironic.md#network-data)
	firstWithBondMode3ad Microversion = 115 // names it otherwise
)
