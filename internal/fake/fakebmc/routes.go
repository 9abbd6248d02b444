package fakebmc

import "slices"

// Parts of paths.
const (
	systemPath  = root + "/Systems/{machine}"
	managerPath = root + "/Managers/{machine}"
	chassisPath = root + "/Chassis/{machine}"
	mediaPath   = "/VirtualMedia/{drive}"
	storagePath = systemPath + "/Storage/" + storageName
	volumePath  = storagePath + "/Volumes/{volume}"
)

// resources are all resources of the service.
var resources = []resource{
	{path: "/redfish", open: true, get: func(*call) object { return object{"v1": root + "/"} }},
	{path: root, open: true, get: rootDocument},
	{path: root + "/odata", open: true, get: func(*call) object {
		return object{
			"@odata.context": root + "/$metadata",
			"value":          []object{{"name": "Systems", "kind": "Singleton", "url": root + "/Systems"}},
		}
	}},
	{path: root + "/SessionService", get: func(c *call) object {
		return document(c.path, "SessionService.v1_1_8", "Session service", object{
			"ServiceEnabled": true, "SessionTimeout": int(c.sessionTime().Seconds()), "Sessions": link(sessionsPath),
		})
	}},
	{path: sessionsPath, post: login, get: func(c *call) object { return collection(c.path, "Session", sessionPaths(c)) }},
	{
		path: sessionsPath + "/{session}", delete: logout,
		exists: func(c *call) bool { _, s := sessionNamed(c); return s != nil },
		get:    func(c *call) object { _, s := sessionNamed(c); return s.document() },
	},

	{path: accountsPath, get: accountServiceDocument},
	{path: accountsPath + "/Roles", get: func(c *call) object { return collection(c.path, "Role", []string{c.path + "/Administrator"}) }},
	{path: accountsPath + "/Roles/Administrator", get: roleDocument},
	{path: accountsPath + "/Accounts", get: func(c *call) object { return collection(c.path, "ManagerAccount", accountPaths(c)) }},
	{path: accountsPath + "/Accounts/{machine}", get: accountDocument},

	{path: root + "/Systems", get: func(c *call) object { return collection(c.path, "ComputerSystem", c.paths((*BMC).Path)) }},
	{path: systemPath, get: systemDocument, patch: changeSystem},
	{path: systemPath + "/Actions/ComputerSystem.Reset", post: reset},
	{path: systemPath + "/SecureBoot", get: secureBootDocument, patch: changeSecureBoot},
	{path: systemPath + "/Bios", get: biosDocument},
	{path: systemPath + "/Bios/Settings", get: pendingDocument, patch: changeBIOS},
	{path: systemPath + "/Bios/Actions/Bios.ResetBios", post: resetBIOS},
	{path: systemPath + "/Processors", get: func(c *call) object { return collection(c.path, "Processor", processorPaths(c.bmc)) }},
	{
		path: systemPath + "/Processors/{processor}", get: processorDocument,
		exists: func(c *call) bool { return slices.Contains(processorPaths(c.bmc), c.path) },
	},
	{path: systemPath + "/EthernetInterfaces", get: func(c *call) object {
		return collection(c.path, "EthernetInterface", cardPaths(c.bmc))
	}},
	{path: systemPath + "/EthernetInterfaces/{card}", get: cardDocument, exists: func(c *call) bool {
		return slices.Contains(cardPaths(c.bmc), c.path)
	}},
	{path: systemPath + "/Storage", get: func(c *call) object { return collection(c.path, "Storage", []string{c.bmc.storage()}) }},
	{path: storagePath, get: storageDocument},
	{path: storagePath + "/Drives/{drive}", get: driveDocument, exists: func(c *call) bool { return driveIndex(c) >= 0 }},
	{path: storagePath + "/Volumes", get: volumesDocument, post: createVolume},
	{path: volumePath, get: volumeDocument, delete: deleteVolume, exists: func(c *call) bool { return volumeNamed(c) != nil }},
	{
		path: volumePath + "/Actions/Volume.Initialize", exists: func(c *call) bool { return volumeNamed(c) != nil },
		post: func(c *call) (reply, *fault) {
			return c.when("initialize volume "+volumeNamed(c).name, reply{status: 204}, func() {})
		},
	},

	{path: root + "/Managers", get: func(c *call) object { return collection(c.path, "Manager", c.paths((*BMC).manager)) }},
	{path: managerPath, get: managerDocument},
	{path: managerPath + "/Actions/Manager.Reset", post: resetManager},
	{path: managerPath + "/LogServices", get: func(c *call) object { return collection(c.path, "LogService", []string{c.path + "/SEL"}) }},
	{path: managerPath + "/LogServices/SEL", get: logDocument},
	{path: managerPath + "/LogServices/SEL/Entries", get: func(c *call) object { return collection(c.path, "LogEntry", nil) }},
	{path: managerPath + "/VirtualMedia", get: mediaCollection},
	{path: managerPath + mediaPath, get: mediaDocument, patch: changeMedia, exists: hasDrive},
	{path: managerPath + mediaPath + "/Actions/VirtualMedia.InsertMedia", post: insertMedia, exists: hasDrive},
	{path: managerPath + mediaPath + "/Actions/VirtualMedia.EjectMedia", post: ejectMedia, exists: hasDrive},
	{path: systemPath + "/VirtualMedia", get: mediaCollection},
	{path: systemPath + mediaPath, get: mediaDocument, patch: changeMedia, exists: hasDrive},
	{path: systemPath + mediaPath + "/Actions/VirtualMedia.InsertMedia", post: insertMedia, exists: hasDrive},
	{path: systemPath + mediaPath + "/Actions/VirtualMedia.EjectMedia", post: ejectMedia, exists: hasDrive},

	{path: root + "/Chassis", get: func(c *call) object { return collection(c.path, "Chassis", c.paths((*BMC).chassis)) }},
	{path: chassisPath, get: chassisDocument, patch: changeChassis},
	{path: chassisPath + "/Power", get: powerDocument},
	{path: chassisPath + "/Thermal", get: thermalDocument},
	{path: chassisPath + "/NetworkAdapters", get: func(c *call) object {
		return collection(c.path, "NetworkAdapter", []string{c.path + "/" + adapterName})
	}},
	{path: chassisPath + "/NetworkAdapters/" + adapterName, get: adapterDocument},
	{path: chassisPath + "/NetworkAdapters/" + adapterName + "/Ports", get: func(c *call) object {
		return collection(c.path, "Port", portPaths(c))
	}},
	{path: chassisPath + "/NetworkAdapters/" + adapterName + "/Ports/{port}", get: portDocument, exists: func(c *call) bool {
		return slices.Contains(portPaths(c), c.path)
	}},

	{path: updatePath, get: updateServiceDocument},
	{path: updatePath + "/Actions/UpdateService.SimpleUpdate", post: simpleUpdate},
	{path: updatePath + "/FirmwareInventory", get: func(c *call) object {
		return collection(c.path, "SoftwareInventory", firmwarePaths(c))
	}},
	{path: updatePath + "/FirmwareInventory/{component}", get: componentDocument, exists: componentExists},

	{path: root + "/TaskService", get: func(c *call) object {
		return document(c.path, "TaskService.v1_1_4", "Task service", object{"ServiceEnabled": true, "Tasks": link(tasksPath)})
	}},
	{path: tasksPath, get: func(c *call) object {
		var paths []string
		for _, t := range ownTasks(c) {
			paths = append(paths, t.path())
		}
		return collection(c.path, "Task", paths)
	}},
	{path: tasksPath + "/{task}", get: taskDocument, status: taskStatus, exists: taskExists},
	{path: root + "/TaskService/TaskMonitors/{task}", get: taskDocument, status: taskStatus, exists: taskExists},

	{path: root + "/Registries", get: func(c *call) object {
		return collection(c.path, "MessageRegistryFile", []string{c.path + "/" + base + ".0", c.path + "/" + biosRegistry})
	}},
	{path: root + "/Registries/{registry}", get: registryDocument, exists: func(c *call) bool { return registries[c.name] != "" }},
	{path: root + "/Registries/" + biosRegistry + "/" + biosRegistry + ".json", get: biosRegistryDocument},
	{path: root + "/Registries/" + base + ".0/" + base + ".0.json", get: baseRegistryDocument},
}
