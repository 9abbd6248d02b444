package fakebmc

import (
	"fmt"
	"maps"
	"slices"
)

func rootDocument(*call) object {
	return document(root, "ServiceRoot.v1_5_0", "Root Service", object{
		"Id": "RootService", "RedfishVersion": "1.11.0", "UUID": "92384634-2938-2342-8820-489239905423", "Product": "Contoso BMC",
		"Systems": link(root + "/Systems"), "Managers": link(root + "/Managers"), "Chassis": link(root + "/Chassis"),
		"SessionService": link(root + "/SessionService"), "AccountService": link(accountsPath),
		"UpdateService": link(updatePath), "Tasks": link(root + "/TaskService"),
		"Registries": link(root + "/Registries"), "Links": object{"Sessions": link(sessionsPath)},
	})
}

// paths lists a path of each of the client's machines.
func (c *call) paths(of func(*BMC) string) []string {
	var all []string
	for _, b := range c.allowed {
		all = append(all, of(b))
	}
	return all
}

func systemDocument(c *call) object {
	b, power := c.bmc, power(c.bmc)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expireOverride()
	path := b.Path()
	return document(path, "ComputerSystem.v1_20_0", b.config.Name, object{
		"SystemType": "Physical", "Manufacturer": b.config.Manufacturer, "Model": b.config.Model, "SerialNumber": b.config.Serial,
		"SKU": b.config.Serial, "UUID": b.uuid("system"), "PowerState": power, "BiosVersion": b.firmware[componentBIOS], "HostName": "",
		"IndicatorLED": b.led, "LocationIndicatorActive": b.led != "Off", "Status": healthy(),
		"ProcessorSummary": object{
			"Count": len(processorPaths(b)), "LogicalProcessorCount": b.config.CPUs, "Model": "Contoso CPU",
			"Status": healthy(),
		},
		"MemorySummary": object{"TotalSystemMemoryGiB": b.config.MemoryGiB, "Status": healthy()},
		"Boot": object{
			"BootSourceOverrideTarget": b.override, "BootSourceOverrideEnabled": b.duration, "BootSourceOverrideMode": b.mode,
			"BootSourceOverrideTarget@Redfish.AllowableValues":  b.bootSources(),
			"BootSourceOverrideEnabled@Redfish.AllowableValues": b.durations(),
			"BootSourceOverrideMode@Redfish.AllowableValues":    []string{modeUEFI, modeLegacy},
		},
		"Processors": link(path + "/Processors"), "EthernetInterfaces": link(path + "/EthernetInterfaces"),
		"Storage":      link(path + "/Storage"),
		"VirtualMedia": link(path + "/VirtualMedia"), "Bios": link(path + "/Bios"), "SecureBoot": link(path + "/SecureBoot"),
		"Links": object{"Chassis": links(b.chassis()), "ManagedBy": links(b.manager())},
		"Actions": object{"#ComputerSystem.Reset": object{
			"target": path + "/Actions/ComputerSystem.Reset", "ResetType@Redfish.AllowableValues": resetTypes,
		}},
	})
}

func power(b *BMC) string {
	if b.On() {
		return "On"
	}
	return "Off"
}

func secureBootDocument(c *call) object {
	b := c.bmc
	b.mu.Lock()
	defer b.mu.Unlock()
	now := "Disabled"
	if b.secureBoot.now {
		now = "Enabled"
	}
	return document(b.Path()+"/SecureBoot", "SecureBoot.v1_1_0", "UEFI Secure Boot", object{
		"SecureBootEnable": b.secureBoot.enabled, "SecureBootCurrentBoot": now, "SecureBootMode": "UserMode",
	})
}

// processorPaths lists the processors: two, or one if the machine has one CPU.
func processorPaths(b *BMC) []string {
	return numbered(b.Path()+"/Processors", min(2, b.config.CPUs))
}

func processorDocument(c *call) object {
	threads := c.bmc.config.CPUs / len(processorPaths(c.bmc))
	return document(c.path, "Processor.v1_7_0", "CPU "+c.name, object{
		"ProcessorType": "CPU", "ProcessorArchitecture": "x86", "InstructionSet": "x86-64", "Manufacturer": "Contoso",
		"Model":       "Contoso CPU",
		"MaxSpeedMHz": 3000, "TotalCores": max(threads/2, 1), "TotalThreads": threads, "Status": healthy(), "Socket": c.name,
	})
}

// numbered lists the paths of a collection's members that are numbered from 1.
func numbered(collection string, count int) []string {
	var all []string
	for n := range count {
		all = append(all, fmt.Sprintf("%s/%d", collection, n+1))
	}
	return all
}

func cardPaths(b *BMC) []string { return numbered(b.Path()+"/EthernetInterfaces", len(b.config.MACs)) }

func cardDocument(c *call) object {
	mac := c.bmc.config.MACs[slices.Index(cardPaths(c.bmc), c.path)]
	return document(c.path, "EthernetInterface.v1_6_0", "NIC "+c.name, object{
		"MACAddress": mac, "PermanentMACAddress": mac, "SpeedMbps": 10000, "FullDuplex": true, "LinkStatus": "LinkUp",
		"InterfaceEnabled": true, "Status": healthy(),
	})
}

func managerDocument(c *call) object {
	b := c.bmc
	b.mu.Lock()
	defer b.mu.Unlock()
	path := b.manager()
	return document(path, "Manager.v1_10_0", "Manager of "+b.config.Name, object{
		"ManagerType": "BMC", "FirmwareVersion": b.firmware[componentBMC], "Model": b.config.Model, "UUID": b.uuid("manager"),
		"Status":     healthy(),
		"PowerState": "On", "VirtualMedia": link(path + "/VirtualMedia"), "LogServices": link(path + "/LogServices"),
		"Links": object{"ManagerForServers": links(b.Path()), "ManagerForChassis": links(b.chassis())},
		"Actions": object{"#Manager.Reset": object{
			"target": path + "/Actions/Manager.Reset", "ResetType@Redfish.AllowableValues": []string{"GracefulRestart", "ForceRestart"},
		}},
	})
}

func resetManager(c *call) (reply, *fault) {
	if kind := c.text("ResetType"); kind != "" && kind != "GracefulRestart" && kind != "ForceRestart" {
		return reply{}, c.badParameter("ResetType", kind)
	}
	c.bmc.Restart()
	return done(nil)
}

func chassisDocument(c *call) object {
	b, power := c.bmc, power(c.bmc)
	b.mu.Lock()
	defer b.mu.Unlock()
	return document(b.chassis(), "Chassis.v1_14_0", "Chassis of "+b.config.Name, object{
		"UUID": b.uuid("chassis"), "ChassisType": "RackMount", "Manufacturer": b.config.Manufacturer, "Model": b.config.Model,
		"SerialNumber": b.config.Serial,
		"PowerState":   power, "IndicatorLED": b.led, "LocationIndicatorActive": b.led != "Off", "Status": healthy(),
		"NetworkAdapters": link(b.chassis() + "/NetworkAdapters"), "Power": link(b.chassis() + "/Power"),
		"Thermal": link(b.chassis() + "/Thermal"), "Links": object{
			"ComputerSystems": links(b.Path()),
			"ManagedBy":       links(b.manager()),
		},
	})
}

// adapterName is the name of the network adapter, which has all cards.
const adapterName = "NIC.1"

func adapterDocument(c *call) object {
	b := c.bmc
	b.mu.Lock()
	defer b.mu.Unlock()
	return document(c.path, "NetworkAdapter.v1_5_0", "Network adapter", object{
		"Manufacturer": b.config.Manufacturer, "Model": "Contoso NIC", "SerialNumber": b.config.Serial + "-NIC", "Status": healthy(),
		"Controllers": []object{{"FirmwarePackageVersion": b.firmware[componentNIC]}}, "Ports": link(c.path + "/Ports"),
	})
}

func portPaths(c *call) (paths []string) {
	for _, id := range slices.Sorted(maps.Keys(c.bmc.config.Heard)) {
		paths = append(paths, c.bmc.chassis()+"/NetworkAdapters/"+adapterName+"/Ports/"+id)
	}
	return paths
}

func portDocument(c *call) object {
	heard := c.bmc.config.Heard[c.name]
	return document(c.path, "Port.v1_12_0", "Port "+c.name, object{
		"LinkStatus": "LinkUp", "Status": healthy(), "Ethernet": object{"LLDPReceive": object{
			"ChassisId": heard.Chassis, "PortId": heard.Port, "SystemName": heard.System,
		}},
	})
}

// changeChassis answers PATCH of a chassis: the indicator LED.
func changeChassis(c *call) *fault {
	if c.body["Boot"] != nil {
		return notWritable("Boot")
	}
	return changeSystem(c)
}

func updateServiceDocument(*call) object {
	return document(updatePath, "UpdateService.v1_8_0", "Update service", object{
		"ServiceEnabled": true, "Status": healthy(), "FirmwareInventory": link(updatePath + "/FirmwareInventory"),
		"Actions": object{"#UpdateService.SimpleUpdate": object{
			"target": updatePath + "/Actions/UpdateService.SimpleUpdate",
			"TransferProtocol@Redfish.AllowableValues": []string{"HTTP", "HTTPS"},
		}},
	})
}
