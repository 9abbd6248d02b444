package provider_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestLog_disabledCostsNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ given, want map[string]string }{
		"no log": {map[string]string{}, map[string]string{"TF_LOG_SDK": "off", "TF_LOG_PROVIDER_METAL": "off"}},
		"a log of the CLI alone": {map[string]string{"TF_LOG_CORE": "TRACE"}, map[string]string{
			"TF_LOG_CORE": "TRACE", "TF_LOG_SDK": "off",
			"TF_LOG_PROVIDER_METAL": "off",
		}},
		"an empty level": {map[string]string{"TF_LOG": ""}, map[string]string{
			"TF_LOG": "", "TF_LOG_SDK": "off",
			"TF_LOG_PROVIDER_METAL": "off",
		}},
		"a log of everything": {map[string]string{"TF_LOG": "ERROR"}, map[string]string{"TF_LOG": "ERROR"}},
		"a log of providers":  {map[string]string{"TF_LOG_PROVIDER": "trace"}, map[string]string{"TF_LOG_PROVIDER": "trace"}},
		"a level of the SDK's": {
			map[string]string{"TF_LOG_SDK": "warn"},
			map[string]string{"TF_LOG_SDK": "warn", "TF_LOG_PROVIDER_METAL": "off"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environment := maps.Clone(tc.given)
			err := provider.Quiet(
				func(name string) (string, bool) { value, given := environment[name]; return value, given },
				func(name, value string) error { environment[name] = value; return nil },
			)
			if err != nil || !maps.Equal(environment, tc.want) {
				t.Errorf("the environment is %v, want %v; %v", environment, tc.want, err)
			}
		})
	}
}

// TF_LOG_PROVIDER=INFO tells what a large apply is doing: the states, the places in the queue and the admissions of each machine.
func TestFakeLog_tellsWhatAnApplyIsDoing(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{StepTime: time.Second})
	var config strings.Builder
	config.WriteString(s.Provider("provisioning_limit = { max_concurrent = 1 }"))
	for n := range 3 {
		fmt.Fprintf(&config, "resource \"metal_host\" \"h%d\" {\n  name = \"rack1-%02d\"\n  driver = \"fake-hardware\"\n  target_state "+
			"= \"available\"\n}\n", n, n)
	}
	w := acctest.NewWorkspace(t, config.String())
	log := filepath.Join(w.Dir, "info.log")
	w.Setenv("TF_LOG_PROVIDER", "INFO")
	w.Setenv("TF_LOG_PATH", log)
	release := s.Hold("cleaning")
	running := w.Start("apply", "-auto-approve")
	site.Until(t, "a machine that waits for a slot", func() bool {
		text, _ := os.ReadFile(log)
		return strings.Contains(string(text), "waits for a slot")
	})
	release()
	if output, code := running.Wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, output)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := func(n int, what string) int {
		line := fmt.Sprintf(`(?m)^.*\[INFO\].*: machine rack1-%02d \([0-9a-f-]{36}\) %s`, n, what)
		return len(regexp.MustCompile(line).FindAllString(string(text), -1))
	}
	waits := 0
	for n := range 3 {
		changes, slots := lines(n, "changed state: [a-z ]+ -> [a-z]+"), lines(n, "in state manageable has a slot after [0-9.]+")
		waits += lines(n, "in state manageable waits for a slot: position 1 of [12]")
		if changes < 2 || changes > 6 || slots != 1 || lines(n, "changed state: .* -> available") != 1 {
			t.Errorf("rack1-%02d: %d changes of state and %d admissions in the log", n, changes, slots)
		}
	}
	if waits == 0 {
		t.Error("the log tells no place in the queue")
	}
	if strings.Contains(string(text), "request to Ironic") {
		t.Error("the log has a line for each request")
	}
}
