package cloudconfig

import (
	"maps"
	"slices"
	"strings"
)

// environment are the variables of the process by name. Empty ones count as missing.
func environment(environ []string) variables {
	env := variables{}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); value != "" {
			env[name] = value
		}
	}
	return env
}

type variables map[string]string

type variable struct{ name, value string }

// choosers say which cloud to read; they are no settings of it.
var choosers = []string{"OS_CLOUD", "OS_CLIENT_CONFIG_FILE", "OS_CLIENT_SECURE_FILE", "OS_CLOUD_NAME"}

// settings are the variables as settings of a cloud. If two variables mean the same, the name of today beats the old one.
func (env variables) settings() map[string]variable {
	settings := map[string]variable{}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		key, found := strings.CutPrefix(name, "OS_")
		if !found || slices.Contains(choosers, name) {
			continue
		}
		key = strings.ToLower(key)
		today := renamed(key)
		if _, set := settings[today]; today == key || !set {
			settings[today] = variable{name, env[name]}
		}
	}
	return settings
}

func renamed(key string) string {
	switch key {
	case "tenant_id":
		return "project_id"
	case "tenant_name":
		return "project_name"
	case "userid":
		return "user_id"
	case "user_name":
		return "username"
	case "auth_token":
		return "token"
	case "auth_plugin":
		return "auth_type"
	case "endpoint_type":
		return "interface"
	case "baremetal_endpoint_type":
		return "baremetal_interface"
	}
	return key
}
