package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"time"
)

var suites = []suite{
	{name: "gophercloud", prepare: buildGophercloud, run: gophercloud},
	{name: "openstacksdk", prepare: installSDK, run: openstacksdk, unconcerned: []unconcerned{volumes}},
	{name: "tempest", prepare: installTempest, run: tempest, unconcerned: []unconcerned{
		volumes,
		{"test_update_portgroup_add", "it wants properties at 1.23, which Ironic 39 hides", "39"},
	}},
	{name: "baremetal", prepare: installCLI, run: baremetal, unconcerned: []unconcerned{
		{tests: "driver_raid_property_list", why: "the fake describes them with a word each"},
	}},
	{name: "sushy", prepare: installBMCClients, run: bmcClient("Sushy"), ofBMC: true},
	{name: "ipmitool", prepare: installBMCClients, run: bmcClient("IPMITool"), ofBMC: true},
}

var volumes = unconcerned{tests: "volume_(connector|target)", why: "the fake has no volumes, and refuses new ones"}

// outcome finds how a test ended: that of go test in one line, that of unittest in a line with its name and, after what it logs, a word.
var (
	outcome = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+)`)
	named   = regexp.MustCompile(`^\S+ \((\S+)\)$`)
	word    = regexp.MustCompile(`(?:^|\.\.\. )(ok|FAIL|ERROR|skipped .*)$`)
)

// test runs tests with a few variables as their environment, and adds their outcomes, with a prefix before each name.
func (r *results) test(ctx context.Context, prefix string, env []string, command string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	tests := exec.CommandContext(ctx, command, args...)
	tests.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	said, err := tests.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	lines, last := bufio.NewScanner(bytes.NewReader(said)), ""
	lines.Buffer(nil, len(said)+1)
	for lines.Scan() {
		if found := outcome.FindStringSubmatch(lines.Text()); found != nil {
			r.outcomes[prefix+found[2]] = found[1]
		}
		if found := named.FindStringSubmatch(lines.Text()); found != nil {
			last = found[1]
		}
		if found := word.FindStringSubmatch(lines.Text()); found != nil && last != "" {
			r.outcomes[prefix+last] = map[string]string{"ok": "PASS", "FAIL": "FAIL", "ERROR": "FAIL"}[found[1]]
			if r.outcomes[prefix+last] == "" {
				r.outcomes[prefix+last] = "SKIP"
			}
			last = ""
		}
	}
	if failed != nil && !slices.Contains(slices.Collect(maps.Values(r.outcomes)), "FAIL") {
		r.outcomes[prefix+command] = "FAIL" // it has ended before its tests
	}
	_, err = r.said.Write(said)
	return err
}
