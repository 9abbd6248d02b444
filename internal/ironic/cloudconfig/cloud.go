// Package cloudconfig reads clouds.yaml and the OS_* variables, as the openstack command does: which Keystone, who asks for what scope, and
// where to look for services. It makes no request.
package cloudconfig

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Cloud is what is known of a cloud. Settings have the names of clouds.yaml, such as auth_url; those of the variables are OS_ and the same
// in capitals.
type Cloud struct {
	Name string // in clouds.yaml; empty: the OS_* variables are all there is
	File string // the clouds.yaml

	values    map[string]string
	variables map[string]string // the variable that a value is from, by the name of the setting
}

// Get returns a setting; "" if it is missing.
func (c *Cloud) Get(setting string) string { return c.values[setting] }

// Setting names a setting for a message, where it is set: a variable, or the setting of the cloud. A setting that is missing belongs where
// the cloud is.
func (c *Cloud) Setting(setting string) string {
	switch variable := c.variables[setting]; {
	case variable != "":
		return variable
	case c.Name == "":
		return "OS_" + strings.ToUpper(setting)
	}
	return fmt.Sprintf("%s of cloud %s in %s", setting, c.Name, c.File)
}

// Place says where the settings are, for a message.
func (c *Cloud) Place() string {
	if c.Name == "" {
		return "the OS_* variables"
	}
	return fmt.Sprintf("cloud %s in %s", c.Name, c.File)
}

// Read returns the settings of the cloud with a name in clouds.yaml, by default that of OS_CLOUD. Without any name they are those of the
// OS_* variables. region chooses one of the cloud's regions; empty: the variables or the file do. environ is the environment, as from
// os.Environ.
//
// What clouds.yaml says of user and scope is not mixed with variables: another cloud may be in them. They stand in for a user that it does
// not name, for a missing secret, and, beside OS_CLOUD, for the project of a user without one. If OS_CLOUD names the cloud, the other
// variables beat clouds.yaml, as with the openstack command; otherwise they stand in for what it lacks.
func Read(name, region string, environ []string) (*Cloud, error) {
	env := environment(environ)
	set := env.settings()
	c := &Cloud{values: map[string]string{}, variables: map[string]string{}}
	here := name == "" || name == env["OS_CLOUD"]
	name = cmp.Or(name, env["OS_CLOUD"])
	if name == "" {
		c.take(set, func(string) bool { return true })
	} else {
		chosen := region
		if chosen == "" && here {
			chosen = env["OS_REGION_NAME"]
		}
		if err := c.load(env, name, chosen); err != nil {
			return nil, err
		}
		c.mix(set, here)
	}
	if region != "" {
		c.values["region_name"] = region
		delete(c.variables, "region_name")
	}
	for _, key := range slices.Sorted(maps.Keys(c.values)) {
		if rest.Padded(c.values[key]) {
			return nil, fmt.Errorf("%s begins or ends with white space, such as a line break: remove it", c.Setting(key))
		}
	}
	c.complete()
	return c, nil
}

// mix adds what the variables say to what clouds.yaml says.
func (c *Cloud) mix(variables map[string]variable, here bool) {
	hasUser, hasScope := c.any(userKeys), c.any(targetKeys)
	// such a credential has its project
	isNamed := c.any([]string{"username", "user_id"}) && !c.any([]string{"application_credential_id", "application_credential_name"})
	c.take(variables, func(key string) bool {
		_, set := c.values[key]
		switch {
		case slices.Contains(userKeys, key) || key == "auth_type":
			return !set && !hasUser
		case slices.Contains(scopeKeys, key):
			return !set && !hasScope && (!hasUser || here && isNamed)
		case slices.Contains(secretKeys, key), key == "auth_url":
			return !set
		}
		return !set || here
	})
}

func (c *Cloud) take(variables map[string]variable, wanted func(key string) bool) {
	for key, v := range variables {
		if wanted(key) {
			c.values[key], c.variables[key] = v.value, v.name
		}
	}
}

// Settings that belong together.
var (
	userKeys = []string{
		"username", "user_id", "user_domain_id", "user_domain_name", "token", "application_credential_id", "application_credential_name",
	}
	targetKeys = []string{"project_id", "project_name", "system_scope", "trust_id", "domain_id", "domain_name"}
	scopeKeys  = append([]string{"project_domain_id", "project_domain_name"}, targetKeys...)
	secretKeys = []string{"password", "application_credential_secret"}
)

// defaultDomain is the ID of the domain of names without a domain, as of the openstack command.
const defaultDomain = "default"

func (c *Cloud) any(keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return c.values[key] != "" })
}

// complete gives names their domains: with a project, domain_id and domain_name are those of user and project; without one, they are a
// scope of their own. What has no domain is in default_domain.
func (c *Cloud) complete() {
	fallback := c.values["default_domain"]
	fallback = cmp.Or(fallback, defaultDomain)
	inProject := c.values["project_id"] != "" || c.values["project_name"] != ""
	for _, of := range []string{"user", "project"} {
		id, name := of+"_domain_id", of+"_domain_name"
		if inProject {
			c.copyMissing(id, "domain_id")
			c.copyMissing(name, "domain_name")
		}
		if c.values[id] == "" && c.values[name] == "" {
			c.values[id] = fallback
		}
	}
	if inProject {
		maps.DeleteFunc(c.values, func(key, _ string) bool { return key == "domain_id" || key == "domain_name" })
	}
}

func (c *Cloud) copyMissing(to, from string) {
	if c.values[to] == "" && c.values[from] != "" {
		c.values[to], c.variables[to] = c.values[from], c.variables[from]
	}
}
