package cloudconfig

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v2"
)

// document is a clouds.yaml, a secure.yaml or a clouds-public.yaml.
type document struct {
	Clouds map[string]entry `yaml:"clouds"`
	Public map[string]entry `yaml:"public-clouds"`
}

type entry map[string]any

// load reads a cloud from clouds.yaml, secure.yaml and the profile that it names.
func (c *Cloud) load(env variables, name, region string) error {
	file, document, err := open(env, "OS_CLIENT_CONFIG_FILE", "clouds", env.directories())
	if err != nil {
		return err
	}
	if file == "" {
		return fmt.Errorf("there is no clouds.yaml in %s, nor does OS_CLIENT_CONFIG_FILE name one", strings.Join(env.directories(), ", "))
	}
	c.Name, c.File = name, file
	cloud, found := document.Clouds[name]
	if !found {
		return fmt.Errorf("%s: there is no cloud %q, but there are: %s", file, name, names(slices.Collect(maps.Keys(document.Clouds))))
	}
	_, secure, err := open(env, "OS_CLIENT_SECURE_FILE", "secure", append([]string{filepath.Dir(file)}, env.directories()...))
	if err != nil {
		return err
	}
	if err := c.expand(env, cloud, region); err != nil {
		return err
	}
	for _, part := range []entry{cloud, secure.Clouds[name]} {
		maps.Copy(c.values, part.flat())
	}
	return c.choose(region, cloud)
}

// expand begins with the profile of a cloud.
func (c *Cloud) expand(env variables, cloud entry, region string) error {
	settings := cloud.flat()
	profile := settings["profile"]
	profile = cmp.Or(profile, settings["cloud"])
	if profile == "" {
		return nil
	}
	_, public, err := open(env, "", "clouds-public", env.directories())
	if err != nil {
		return err
	}
	base, found := public.Public[profile]
	if !found {
		return fmt.Errorf("%s: the profile %q of cloud %s is in no clouds-public.yaml in %s. Profiles that come with the openstack "+
			"command are not known here: write auth_url into the cloud", c.File, profile, c.Name, strings.Join(env.directories(), ", "))
	}
	maps.Copy(c.values, base.flat())
	if _, own := cloud["regions"]; !own && settings["region_name"] == "" {
		return c.choose(region, base)
	}
	return nil
}

// choose applies the settings of one region of a cloud that lists its regions: the first one if none is asked for.
func (c *Cloud) choose(region string, cloud entry) error {
	listed, _ := cloud["regions"].([]any)
	var known []string
	for _, item := range listed {
		name, values := fmt.Sprint(item), entry(nil)
		if with, ok := item.(map[any]any); ok {
			name, values = fmt.Sprint(with["name"]), asEntry(with["values"])
		}
		known = append(known, name)
		if region == "" || region == name {
			maps.Copy(c.values, values.flat())
			c.values["region_name"] = name
			return nil
		}
	}
	if len(known) > 0 {
		return fmt.Errorf("%s: cloud %s has no region %q, but has: %s", c.File, c.Name, region, names(known))
	}
	return nil
}

// flat returns the settings of a cloud. Those below auth are settings like others.
func (e entry) flat() map[string]string {
	settings := map[string]string{}
	add := func(key string, value any) {
		switch value.(type) {
		case nil, []any, map[any]any:
			return
		}
		key = strings.ReplaceAll(key, "-", "_")
		today := renamed(key)
		if _, set := settings[today]; today == key || !set {
			settings[today] = fmt.Sprint(value)
		}
	}
	for key, value := range asEntry(e["auth"]) {
		add(key, value)
	}
	for key, value := range e {
		add(key, value)
	}
	return settings
}

func asEntry(value any) entry {
	mapping, _ := value.(map[any]any)
	e := entry{}
	for key, value := range mapping {
		e[fmt.Sprint(key)] = value
	}
	return e
}

// open reads the file that a variable names, or the first file with a name in directories. It returns an empty name if there is none.
func open(env variables, variable, name string, directories []string) (string, document, error) {
	var found document
	if file := env[variable]; file != "" {
		err := parse(file, &found)
		if errors.Is(err, fs.ErrNotExist) {
			return "", found, fmt.Errorf("%s is %q: no such file", variable, file)
		}
		return file, found, err
	}
	for _, directory := range directories {
		for _, suffix := range []string{".yaml", ".yml", ".json"} {
			file := filepath.Join(directory, name+suffix)
			if err := parse(file, &found); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
				return file, found, err
			}
		}
	}
	return "", found, nil
}

// parse reads a file. Its error does not quote the file, which has secrets.
func parse(file string, into *document) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		if _, ok := errors.AsType[*yaml.TypeError](err); ok {
			return fmt.Errorf("%s: each cloud below clouds must be a mapping, as in the documentation of clouds.yaml", file)
		}
		if !placed.MatchString(err.Error()) {
			return fmt.Errorf("%s is not YAML as it is meant: a text that begins with *, & or { needs quotes", file)
		}
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// placed matches the errors of the parser that name a line, and quote nothing of the file. The others quote what it takes for an anchor or
// a key, which may be a password without quotes.
var placed = regexp.MustCompile(`^yaml: line \d+: `)

// directories are where the openstack command looks for files.
func (env variables) directories() []string {
	var found []string
	add := func(directory string) {
		if !slices.Contains(found, directory) {
			found = append(found, directory)
		}
	}
	if here, err := os.Getwd(); err == nil {
		add(here)
	}
	if home := env["XDG_CONFIG_HOME"]; home != "" {
		add(filepath.Join(home, "openstack"))
	}
	if home := env["HOME"]; home != "" {
		add(filepath.Join(home, ".config", "openstack"))
	}
	add("/etc/openstack")
	return found
}

// names joins names in order.
func names(all []string) string {
	slices.Sort(all)
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
