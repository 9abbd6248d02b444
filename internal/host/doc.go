// Package host is a bare-metal host, whole: what a plan of it decides, and what an apply does.
//
//   - plan.go, wish.go, steps.go and plan_*.go: Decide, its values, and its rules; look.go asks the server what Decide needs. target.go,
//     driver.go, console.go, power.go, runbook.go, preparation.go, oneview.go and destroy.go have the rules for the settings of these
//     names.
//   - claim*.go: which node a host gets, a new one or one that there is already. Two hosts never get one name, BMC or MAC address, also
//     while a run moves these from one host to another.
//   - apply*.go: write the settings, ports and maintenance of the node, and boot, configure, inspect, clean and switch the machine.
//     apply_outcome.go has After, which decides what Terraform stores then, also after a failure.
//   - ports_*.go: which ports and port groups are refused, and how those of the node become what the configuration says.
//   - hardware*.go and inspection.go: BIOS settings, RAID volumes and firmware, compared with what Ironic has read; when a machine is
//     inspected.
//
// Package cabling proves cables, package found reads and claims the nodes of discovered machines, and package naming names these.
package host
