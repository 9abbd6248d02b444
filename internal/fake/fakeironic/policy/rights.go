package policy

// right is a rule of Ironic's policy (ironic/common/policy.py): the least role that it grants something, by scope.
type right struct {
	system        rank // with system scope
	owner, lessee rank // in the project that owns the object, or that leases the node
	any           rank // with any scope

	formerly string // the legacy rule, if it is another rule; else the legacy one grants it to the admins of all projects
	recent   bool   // there is no legacy rule

	systemScope scopeOnly // which versions demand system scope
}

// scopeOnly says which versions refuse tokens of a project with status 500.
type scopeOnly int

const (
	neither scopeOnly = iota
	both
	only21
)

func (r right) isSystemOnly(legacy bool) bool {
	return r.systemScope == both || r.systemScope == only21 && legacy
}

// systemChecks are the rules for system scope as Ironic prints them, by the least role.
var systemChecks = map[rank]string{ //nolint:exhaustive // no rule demands a manager of the system
	asAdmin:  "role:admin and system_scope:all",
	asMember: "(role:member and system_scope:all) or rule:service_role",
	asReader: "(role:reader and system_scope:all) or (role:service and system_scope:all) or rule:service_role",
}

// The checks that many rules share, by Ironic's names.
var (
	systemAdmin                     = right{system: asAdmin}
	systemMember                    = right{system: asMember}
	systemReader                    = right{system: asReader}
	apiReader                       = right{any: asReader}
	systemOrProjectMember           = right{system: asMember, owner: asMember, lessee: asMember}
	systemOrProjectReader           = right{system: asReader, owner: asReader, lessee: asReader}
	systemOrOwnerMemberLesseeAdmin  = right{system: asMember, owner: asMember, lessee: asManager}
	systemAdminOrOwnerAdmin         = right{system: asAdmin, owner: asManager}
	systemMemberOrOwnerAdmin        = right{system: asMember, owner: asManager}
	systemMemberOrOwnerMember       = right{system: asMember, owner: asMember}
	systemOrOwnerReader             = right{system: asReader, owner: asReader}
	recentSystemAdmin               = right{system: asAdmin, recent: true}
	recentSystemMember              = right{system: asMember, recent: true}
	recentSystemReader              = right{system: asReader, recent: true}
	recentSystemOrProjectMember     = right{system: asMember, owner: asMember, lessee: asMember, recent: true}
	recentSystemOrProjectReader     = right{system: asReader, owner: asReader, lessee: asReader, recent: true}
	runbookAdmin                    = right{system: asMember, owner: asManager, recent: true}
	systemAdminOnly, systemReadOnly = right{system: asAdmin, systemScope: both}, right{system: asReader, systemScope: both}
)

// rights are the rules by name, without "baremetal:".
var rights = map[string]right{
	"node:create":                   systemAdmin,
	"node:create:self_owned_node":   {any: asAdmin, recent: true},
	"node:list":                     apiReader,
	"node:list_all":                 systemReader,
	"node:get":                      systemOrProjectReader,
	"node:get:filter_threshold":     systemReader,
	"node:get:last_error":           systemOrOwnerReader,
	"node:get:reservation":          systemOrOwnerReader,
	"node:get:driver_internal_info": systemOrOwnerReader,
	"node:get:driver_info":          systemOrOwnerReader,
	"node:update:driver_info":       systemMemberOrOwnerMember,
	"node:update:properties":        systemMemberOrOwnerMember,
	"node:update:chassis_uuid":      systemAdmin,
	"node:update:instance_uuid":     systemMemberOrOwnerMember,
	"node:update:lessee":            systemMemberOrOwnerMember,
	"node:update:owner":             systemMember,
	"node:update:driver_interfaces": systemMemberOrOwnerAdmin,
	"node:update:network_data":      systemMemberOrOwnerMember,
	"node:update:conductor_group":   systemMember,
	"node:update:name":              systemMemberOrOwnerMember,
	"node:update:retired":           systemMemberOrOwnerMember,
	"node:update:shard":             recentSystemAdmin,
	"node:update:parent_node":       recentSystemMember,
	"node:update:disable_power_off": recentSystemAdmin,
	"node:update":                   systemOrProjectMember,
	"node:update_extra":             {system: asMember, owner: asMember, lessee: asMember, formerly: "node:update"},
	"node:update_instance_info":     {system: asMember, owner: asMember, lessee: asManager, formerly: "node:update"},
	"node:disable_cleaning":         {system: asAdmin, formerly: "node:update", systemScope: only21},
	"node:delete":                   systemAdmin,
	"node:delete:self_owned_node":   {owner: asAdmin, recent: true},
	"node:validate":                 systemOrOwnerMemberLesseeAdmin,
	"node:set_maintenance":          systemOrOwnerMemberLesseeAdmin,
	"node:clear_maintenance":        systemOrOwnerMemberLesseeAdmin,
	"node:get_boot_device":          systemMemberOrOwnerAdmin,
	"node:set_boot_device":          systemMemberOrOwnerAdmin,
	"node:inject_nmi":               systemMemberOrOwnerAdmin,
	"node:get_indicator_state":      systemOrProjectReader,
	"node:set_indicator_state":      systemMemberOrOwnerMember,
	"node:get_states":               systemOrProjectReader,
	"node:set_power_state":          systemOrProjectMember,
	"node:set_boot_mode":            systemOrProjectMember,
	"node:set_secure_boot":          systemOrProjectMember,
	"node:set_provision_state":      systemOrOwnerMemberLesseeAdmin,
	"node:set_raid_state":           systemMemberOrOwnerMember,
	"node:get_console":              systemMemberOrOwnerMember,
	"node:set_console_state":        systemMemberOrOwnerMember,
	"node:vif:list":                 systemOrProjectReader,
	"node:vif:attach":               systemOrOwnerMemberLesseeAdmin,
	"node:vif:detach":               systemOrOwnerMemberLesseeAdmin,
	"node:traits:list":              systemOrProjectReader,
	"node:traits:set":               systemMemberOrOwnerAdmin,
	"node:traits:delete":            systemMemberOrOwnerAdmin,
	"node:bios:get":                 systemOrProjectReader,
	"node:firmware:get":             recentSystemOrProjectReader,
	"node:vmedia:attach":            recentSystemOrProjectMember,
	"node:vmedia:detach":            recentSystemOrProjectMember,
	"node:vmedia:get":               recentSystemOrProjectReader,
	"node:history:get":              systemOrOwnerReader,
	"node:inventory:get":            systemOrOwnerReader,
	"port:get":                      systemOrProjectReader,
	"port:list":                     apiReader,
	"port:list_all":                 systemReader,
	"port:create":                   systemAdminOrOwnerAdmin,
	"port:delete":                   systemAdminOrOwnerAdmin,
	"port:update":                   systemMemberOrOwnerAdmin,
	"portgroup:get":                 systemOrProjectReader,
	"portgroup:list":                apiReader,
	"portgroup:list_all":            systemReader,
	"portgroup:create":              systemAdminOrOwnerAdmin,
	"portgroup:delete":              systemAdminOrOwnerAdmin,
	"portgroup:update":              systemMemberOrOwnerAdmin,
	"chassis:get":                   systemReadOnly,
	"chassis:create":                systemAdminOnly,
	"chassis:update":                {system: asMember, systemScope: both},
	"chassis:delete":                systemAdminOnly,
	"driver:get":                    systemReadOnly,
	"driver:get_properties":         systemReadOnly,
	"conductor:get":                 {system: asReader, systemScope: only21},
	"allocation:get":                systemOrOwnerReader,
	"allocation:list":               apiReader,
	"allocation:list_all":           systemReader,
	"allocation:create":             {any: asMember},
	"allocation:create_restricted":  {system: asMember, formerly: "allocation:create"},
	"allocation:delete":             systemMemberOrOwnerMember,
	"allocation:update":             systemMemberOrOwnerMember,
	"deploy_template:get":           {system: asReader, systemScope: only21},
	"deploy_template:create":        {system: asAdmin, systemScope: only21},
	"deploy_template:update":        {system: asAdmin, systemScope: only21},
	"deploy_template:delete":        {system: asAdmin, systemScope: only21},
	"runbook:get":                   {system: asReader, owner: asReader, recent: true},
	"runbook:list":                  {any: asReader, recent: true},
	"runbook:create":                {system: asMember, any: asManager, recent: true},
	"runbook:update":                runbookAdmin,
	"runbook:delete":                runbookAdmin,
	"runbook:use":                   runbookAdmin,
	"inspection_rule:get":           recentSystemReader,
	"inspection_rule:create":        recentSystemAdmin,
	"inspection_rule:update":        recentSystemAdmin,
	"inspection_rule:delete":        recentSystemAdmin,
}

// RequestRules are the rules of requests, by method and path. A node stands for its path, and its parts follow.
var RequestRules = map[string]string{
	"GET nodes": "node:list", "POST nodes": "node:create",
	"GET node": "node:get", "DELETE node": "node:delete",
	"GET node/states": "node:get_states", "PUT node/states/provision": "node:set_provision_state",
	"PUT node/states/power":     "node:set_power_state",
	"PUT node/states/boot_mode": "node:set_boot_mode", "PUT node/states/secure_boot": "node:set_secure_boot",
	"PUT node/states/raid": "node:set_raid_state", "GET node/states/console": "node:get_console",
	"PUT node/states/console": "node:set_console_state",
	"PUT node/maintenance":    "node:set_maintenance", "DELETE node/maintenance": "node:clear_maintenance",
	"GET node/traits": "node:traits:list", "PUT node/traits": "node:traits:set", "DELETE node/traits": "node:traits:delete",
	"GET node/vifs": "node:vif:list", "POST node/vifs": "node:vif:attach", "DELETE node/vifs": "node:vif:detach",
	"GET node/management/boot_device": "node:get_boot_device", "PUT node/management/boot_device": "node:set_boot_device",
	"GET node/management/indicators": "node:get_indicator_state", "PUT node/management/indicators": "node:set_indicator_state",
	"PUT node/management/inject_nmi": "node:inject_nmi", "GET node/validate": "node:validate",
	"GET node/bios": "node:bios:get", "GET node/firmware": "node:firmware:get", "GET node/history": "node:history:get",
	"GET node/inventory": "node:inventory:get", "GET node/vmedia": "node:vmedia:get", "POST node/vmedia": "node:vmedia:attach",
	"DELETE node/vmedia": "node:vmedia:detach",
	"GET port":           "port:get", "PATCH port": "port:update", "DELETE port": "port:delete",
	"GET portgroup": "portgroup:get", "PATCH portgroup": "portgroup:update", "DELETE portgroup": "portgroup:delete",
	"GET allocation": "allocation:get", "PATCH allocation": "allocation:update", "DELETE allocation": "allocation:delete",
	"GET chassis": "chassis:get", "POST chassis": "chassis:create", "PATCH chassis": "chassis:update", "DELETE chassis": "chassis:delete",
	"GET drivers": "driver:get", "GET drivers/properties": "driver:get_properties", "GET conductors": "conductor:get",
	"GET deploy_templates": "deploy_template:get", "POST deploy_templates": "deploy_template:create",
	"PATCH deploy_templates": "deploy_template:update", "DELETE deploy_templates": "deploy_template:delete",
	"GET runbooks": "runbook:list", "POST runbooks": "runbook:create", "PATCH runbooks": "runbook:update",
	"DELETE runbooks":      "runbook:delete",
	"GET inspection_rules": "inspection_rule:get", "POST inspection_rules": "inspection_rule:create",
	"PATCH inspection_rules": "inspection_rule:update", "DELETE inspection_rules": "inspection_rule:delete",
}

// patchRules are the rules of the fields of a node, by the beginning of the path in a patch, in Ironic's order.
var patchRules = []struct {
	path, name string
	recent     bool // 21.4 has no such rule
}{
	{"/instance_info", "node:update_instance_info", false},
	{"/extra", "node:update_extra", false},
	{"/driver_info", "node:update:driver_info", false},
	{"/properties", "node:update:properties", false},
	{"/chassis_uuid", "node:update:chassis_uuid", false},
	{"/instance_uuid", "node:update:instance_uuid", false},
	{"/instance_name", "node:update_instance_info", true},
	{"/lessee", "node:update:lessee", false},
	{"/owner", "node:update:owner", false},
	{"/driver", "node:update:driver_interfaces", false},
	{"/network_data", "node:update:network_data", false},
	{"/conductor_group", "node:update:conductor_group", false},
	{"/name", "node:update:name", false},
	{"/retired", "node:update:retired", false},
	{"/shard", "node:update:shard", false},
	{"/parent_node", "node:update:parent_node", true},
	{"/disable_power_off", "node:update:disable_power_off", true},
	{"/maintenance", "node:set_maintenance", true},
}
