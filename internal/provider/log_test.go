package provider_test

import (
	"maps"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

func TestLog_disabledCostsNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ given, want map[string]string }{
		"no log":                 {map[string]string{}, map[string]string{"TF_LOG_SDK": "off", "TF_LOG_PROVIDER_METAL": "off"}},
		"a log of the CLI alone": {map[string]string{"TF_LOG_CORE": "TRACE"}, map[string]string{"TF_LOG_CORE": "TRACE", "TF_LOG_SDK": "off", "TF_LOG_PROVIDER_METAL": "off"}},
		"an empty level":         {map[string]string{"TF_LOG": ""}, map[string]string{"TF_LOG": "", "TF_LOG_SDK": "off", "TF_LOG_PROVIDER_METAL": "off"}},
		"a log of everything":    {map[string]string{"TF_LOG": "ERROR"}, map[string]string{"TF_LOG": "ERROR"}},
		"a log of providers":     {map[string]string{"TF_LOG_PROVIDER": "trace"}, map[string]string{"TF_LOG_PROVIDER": "trace"}},
		"a level of the SDK's":   {map[string]string{"TF_LOG_SDK": "warn"}, map[string]string{"TF_LOG_SDK": "warn", "TF_LOG_PROVIDER_METAL": "off"}},
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
