package provision

import (
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// granted is to whom a rule of Ironic's policy grants something by default: the least role, by scope; empty: none. In the order of the roles
// reader, member, manager and admin, each includes the ones before it.
type granted struct {
	system        string // with system scope
	owner, lessee string // in the project that owns the object, or that leases the node
	any           string // in any project
}

// grants are the rules that a user of this provider can lack, by their names without "baremetal:", as both 21.4 and 39 have them
// (reference/ironic.md#policy). A name stands for all rules that begin with it, unless a longer one does.
var grants = map[string]granted{
	"allocation:":                   {system: "member", owner: "member"},
	"allocation:create":             {system: "member", any: "member"},
	"allocation:get":                {system: "reader", owner: "reader"},
	"chassis:get":                   {system: "reader"},
	"chassis:":                      {system: "admin"},
	"conductor:get":                 {system: "reader"},
	"deploy_template:":              {system: "admin"},
	"deploy_template:get":           {system: "reader"},
	"driver:get":                    {system: "reader"},
	"inspection_rule:":              {system: "admin"},
	"inspection_rule:get":           {system: "reader"},
	"node:bios:get":                 {system: "reader", owner: "reader", lessee: "reader"},
	"node:clear_maintenance":        {system: "member", owner: "member", lessee: "manager"},
	"node:create":                   {system: "admin", any: "admin"}, // node:create:self_owned_node
	"node:delete":                   {system: "admin", owner: "admin"},
	"node:disable_cleaning":         {system: "admin"},
	"node:firmware:get":             {system: "reader", owner: "reader", lessee: "reader"},
	"node:get_boot_device":          {system: "member", owner: "manager"},
	"node:history:get":              {system: "reader", owner: "reader"},
	"node:inject_nmi":               {system: "member", owner: "manager"},
	"node:inventory:get":            {system: "reader", owner: "reader"},
	"node:list":                     {system: "reader", any: "reader"},
	"node:set_boot_device":          {system: "member", owner: "manager"},
	"node:set_boot_mode":            {system: "member", owner: "member", lessee: "member"},
	"node:set_maintenance":          {system: "member", owner: "member", lessee: "manager"},
	"node:set_power_state":          {system: "member", owner: "member", lessee: "member"},
	"node:set_provision_state":      {system: "member", owner: "member", lessee: "manager"},
	"node:set_raid_state":           {system: "member", owner: "member"},
	"node:set_secure_boot":          {system: "member", owner: "member", lessee: "member"},
	"node:traits:":                  {system: "member", owner: "manager"},
	"node:update":                   {system: "member", owner: "member", lessee: "member"},
	"node:update:":                  {system: "member", owner: "member"},
	"node:update:chassis_uuid":      {system: "admin"},
	"node:update:conductor_group":   {system: "member"},
	"node:update:disable_power_off": {system: "admin"},
	"node:update:driver_interfaces": {system: "member", owner: "manager"},
	"node:update:owner":             {system: "member"},
	"node:update:parent_node":       {system: "member"},
	"node:update:shard":             {system: "admin"},
	"node:update_owner_provisioned": {system: "admin"},
	"node:update_instance_info":     {system: "member", owner: "member", lessee: "manager"},
	"node:validate":                 {system: "member", owner: "member", lessee: "manager"},
	"node:vif:":                     {system: "member", owner: "member", lessee: "manager"},
	"node:vif:list":                 {system: "reader", owner: "reader", lessee: "reader"},
	"node:vmedia:":                  {system: "member", owner: "member", lessee: "member"},
	"port:":                         {system: "admin", owner: "manager"},
	"port:update":                   {system: "member", owner: "manager"},
	"portgroup:":                    {system: "admin", owner: "manager"},
	"portgroup:update":              {system: "member", owner: "manager"},
	"runbook:":                      {system: "member", owner: "manager"},
	"runbook:create":                {system: "member", any: "manager"},
	"runbook:get":                   {system: "reader", owner: "reader"},
}

// grantOf returns to whom a rule grants something by default; false if it is not known.
func grantOf(rule string) (of granted, known bool) {
	rule = strings.TrimPrefix(rule, "baremetal:")
	length := 0
	for name, g := range grants {
		exact := rule == name || strings.HasPrefix(rule, name) && (strings.HasSuffix(name, ":") || rule[len(name)] == ':' || rule[len(name)] == '_')
		if exact && len(name) > length {
			of, known, length = g, true, len(name)
		}
	}
	return of, known
}

// of lists the roles for a kind of object.
func (g granted) of(object string) string {
	var parts []string
	for _, part := range []struct{ role, where string }{
		{g.system, "with system scope"},
		{g.owner, "in the project that owns the " + object},
		{g.lessee, "in the project that leases it"},
		{g.any, "in any project"},
	} {
		if part.role != "" {
			parts = append(parts, part.role+" "+part.where)
		}
	}
	if last := len(parts) - 1; last > 0 {
		return strings.Join(parts[:last], ", ") + " or " + parts[last]
	}
	return strings.Join(parts, "")
}

// objectOf names the kind of object that a rule is about.
func objectOf(rule string) string {
	if kind, _, _ := strings.Cut(strings.TrimPrefix(rule, "baremetal:"), ":"); kind == "allocation" || kind == "runbook" {
		return kind
	}
	return "node"
}

// getRight says what to do about a missing right.
const getRight = "Ask for such a role, or ask an operator of Ironic to grant the rule to your role in policy.yaml."

// adviseRefusal says which right a user lacks, and how to get it.
func adviseRefusal(refusal *ironic.Refusal) string {
	if refusal.Rule == "" {
		return "The credentials are valid but lack the right to do this: ask for a role on the baremetal service, such as admin or member."
	}
	advice := fmt.Sprintf("The rule %s of Ironic's policy does not allow this to the user.", refusal.Rule)
	if of, known := grantOf(refusal.Rule); known {
		advice += fmt.Sprintf(" By default, it needs the role %s.", of.of(objectOf(refusal.Rule)))
	}
	advice += " " + getRight
	if refusal.Scope == "system" {
		advice += " Ironic refuses this rule to tokens of a project: use credentials with system scope (OS_SYSTEM_SCOPE=all, without OS_PROJECT_NAME and OS_PROJECT_ID), if you have them."
	}
	return advice
}
