package fakebmc

// accountsPath is the path of the accounts. Each machine has one, with its user name and password.
const accountsPath = root + "/AccountService"

func accountServiceDocument(c *call) object {
	return document(c.path, "AccountService.v1_7_0", "Account service", object{
		"ServiceEnabled": true, "MinPasswordLength": 1, "AccountLockoutThreshold": 0,
		"Accounts": link(c.path + "/Accounts"), "Roles": link(c.path + "/Roles"),
	})
}

func accountPaths(c *call) []string {
	return c.paths(func(b *BMC) string { return accountsPath + "/Accounts/" + b.config.Name })
}

func accountDocument(c *call) object {
	return document(c.path, "ManagerAccount.v1_6_0", "Account", object{
		"UserName": c.bmc.config.Username, "Password": nil, "Enabled": true, "Locked": false, "RoleId": "Administrator",
		"AccountTypes": []string{"Redfish"}, "Links": object{"Role": link(accountsPath + "/Roles/Administrator")},
	})
}

func roleDocument(c *call) object {
	return document(c.path, "Role.v1_3_0", "Administrator", object{
		"RoleId": "Administrator", "IsPredefined": true,
		"AssignedPrivileges": []string{"Login", "ConfigureManager", "ConfigureUsers", "ConfigureSelf", "ConfigureComponents"},
	})
}

// logDocument shows a log of events, which has none.
func logDocument(c *call) object {
	return document(c.path, "LogService.v1_1_3", "System event log", object{
		"ServiceEnabled": true, "LogEntryType": "SEL", "OverWritePolicy": "WrapsWhenFull", "MaxNumberOfRecords": 1000, "Status": healthy(),
		"Entries": link(c.path + "/Entries"),
	})
}

// sensor is the only member of a list in a document.
func (c *call) sensor(list string, fields object) []object {
	fields["@odata.id"], fields["MemberId"], fields["Status"] = c.path+"#/"+list+"/0", "0", healthy()
	return []object{fields}
}

// powerDocument shows what the machine draws, by its only power supply.
func powerDocument(c *call) object {
	watts := 10
	if c.bmc.On() {
		watts = 250
	}
	return document(c.path, "Power.v1_6_0", "Power", object{
		"PowerControl": c.sensor("PowerControl", object{"Name": "Server", "PowerConsumedWatts": watts, "PowerCapacityWatts": 800}),
		"PowerSupplies": c.sensor("PowerSupplies", object{
			"Name": "PSU 1", "PowerCapacityWatts": 800, "LastPowerOutputWatts": watts, "Manufacturer": c.bmc.config.Manufacturer,
		}),
	})
}

func thermalDocument(c *call) object {
	return document(c.path, "Thermal.v1_6_0", "Thermal", object{
		"Temperatures": c.sensor("Temperatures", object{"Name": "Inlet", "ReadingCelsius": 21, "PhysicalContext": "Intake"}),
		"Fans":         c.sensor("Fans", object{"Name": "Fan 1", "Reading": 4200, "ReadingUnits": "RPM"}),
	})
}
