package failure

import (
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// Granted is to whom a rule of Ironic's policy grants something by default: the least role, by scope; empty: none. In the order of the
// roles reader, member, manager and admin, each includes the ones before it.
type Granted struct {
	System        string // with system scope
	Owner, Lessee string // in the project that owns the object, or that leases the node
	Any           string // in any project
}

// grants are the rules that a user of this provider can lack, by their names without "baremetal:", as both 21.4 and 39 have them
// (reference/ironic.md#policy). A name stands for all rules that begin with it, unless a longer one does.
var grants = map[string]Granted{
	"allocation:":                   {System: "member", Owner: "member"},
	"allocation:create":             {System: "member", Any: "member"},
	"allocation:get":                {System: "reader", Owner: "reader"},
	"chassis:get":                   {System: "reader"},
	"chassis:":                      {System: "admin"},
	"conductor:get":                 {System: "reader"},
	"deploy_template:":              {System: "admin"},
	"deploy_template:get":           {System: "reader"},
	"driver:get":                    {System: "reader"},
	"inspection_rule:":              {System: "admin"},
	"inspection_rule:get":           {System: "reader"},
	"node:bios:get":                 {System: "reader", Owner: "reader", Lessee: "reader"},
	"node:clear_maintenance":        {System: "member", Owner: "member", Lessee: "manager"},
	"node:create":                   {System: "admin", Any: "admin"}, // node:create:self_owned_node
	"node:delete":                   {System: "admin", Owner: "admin"},
	"node:disable_cleaning":         {System: "admin"},
	"node:firmware:get":             {System: "reader", Owner: "reader", Lessee: "reader"},
	"node:get_boot_device":          {System: "member", Owner: "manager"},
	"node:get_indicator_state":      {System: "reader", Owner: "reader", Lessee: "reader"},
	"node:get_console":              {System: "member", Owner: "member"},
	"node:history:get":              {System: "reader", Owner: "reader"},
	"node:inject_nmi":               {System: "member", Owner: "manager"},
	"node:inventory:get":            {System: "reader", Owner: "reader"},
	"node:list":                     {System: "reader", Any: "reader"},
	"node:set_boot_device":          {System: "member", Owner: "manager"},
	"node:set_console_state":        {System: "member", Owner: "member"},
	"node:set_boot_mode":            {System: "member", Owner: "member", Lessee: "member"},
	"node:set_indicator_state":      {System: "member", Owner: "member"},
	"node:set_maintenance":          {System: "member", Owner: "member", Lessee: "manager"},
	"node:set_power_state":          {System: "member", Owner: "member", Lessee: "member"},
	"node:set_provision_state":      {System: "member", Owner: "member", Lessee: "manager"},
	"node:set_raid_state":           {System: "member", Owner: "member"},
	"node:set_secure_boot":          {System: "member", Owner: "member", Lessee: "member"},
	"node:traits:":                  {System: "member", Owner: "manager"},
	"node:update":                   {System: "member", Owner: "member", Lessee: "member"},
	"node:update:":                  {System: "member", Owner: "member"},
	"node:update:chassis_uuid":      {System: "admin"},
	"node:update:conductor_group":   {System: "member"},
	"node:update:disable_power_off": {System: "admin"},
	"node:update:driver_interfaces": {System: "member", Owner: "manager"},
	"node:update:owner":             {System: "member"},
	"node:update:parent_node":       {System: "member"},
	"node:update:shard":             {System: "admin"},
	"node:update_owner_provisioned": {System: "admin"},
	"node:update_instance_info":     {System: "member", Owner: "member", Lessee: "manager"},
	"node:validate":                 {System: "member", Owner: "member", Lessee: "manager"},
	"node:vif:":                     {System: "member", Owner: "member", Lessee: "manager"},
	"node:vif:list":                 {System: "reader", Owner: "reader", Lessee: "reader"},
	"node:vmedia:":                  {System: "member", Owner: "member", Lessee: "member"},
	"port:":                         {System: "admin", Owner: "manager"},
	"port:update":                   {System: "member", Owner: "manager"},
	"portgroup:":                    {System: "admin", Owner: "manager"},
	"portgroup:update":              {System: "member", Owner: "manager"},
	"runbook:":                      {System: "member", Owner: "manager"},
	"runbook:create":                {System: "member", Any: "manager"},
	"runbook:get":                   {System: "reader", Owner: "reader"},
}

// GrantOf returns to whom a rule grants something by default; false if it is not known.
func GrantOf(rule string) (of Granted, known bool) {
	rule = strings.TrimPrefix(rule, "baremetal:")
	length := 0
	for name, g := range grants {
		exact := rule == name || strings.HasPrefix(rule, name) && (strings.HasSuffix(name, ":") || rule[len(name)] == ':' ||
			rule[len(name)] == '_')
		if exact && len(name) > length {
			of, known, length = g, true, len(name)
		}
	}
	return of, known
}

// Of lists the roles for a kind of object.
func (g Granted) Of(object string) string {
	var parts []string
	for _, part := range []struct{ role, where string }{
		{g.System, "with system scope"},
		{g.Owner, "in the project that owns the " + object},
		{g.Lessee, "in the project that leases it"},
		{g.Any, "in any project"},
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

// ObjectOf names the kind of object that a rule is about.
func ObjectOf(rule string) string {
	if kind, _, _ := strings.Cut(strings.TrimPrefix(rule, "baremetal:"), ":"); kind == "allocation" || kind == "runbook" {
		return kind
	}
	return "node"
}

// GetRight says what to do about a missing right.
const GetRight = "Ask for such a role, or ask an operator of Ironic to grant the rule to your role in policy.yaml."

// AdviseRefusal says which right a user lacks, and how to get it.
func AdviseRefusal(refusal *api.Refusal) string {
	if refusal.Rule == "" {
		return "The credentials are valid but lack the right to do this: ask for a role on the baremetal service, such as admin or member."
	}
	advice := fmt.Sprintf("The rule %s of Ironic's policy does not allow this to the user.", refusal.Rule)
	if of, known := GrantOf(refusal.Rule); known {
		advice += fmt.Sprintf(" By default, it needs the role %s.", of.Of(ObjectOf(refusal.Rule)))
	}
	advice += " " + GetRight
	if refusal.Scope == "system" {
		advice += " Ironic refuses this rule to tokens of a project: use credentials with system scope (OS_SYSTEM_SCOPE=all, without " +
			"OS_PROJECT_NAME and OS_PROJECT_ID), if you have them."
	}
	return advice
}
