package provider

// Quiet switches off the log of this process when the CLI keeps none, that is without TF_LOG and TF_LOG_PROVIDER. Else the SDK writes all
// that it traces, and the CLI reads that and throws it away: 45 % of the processor time of a plan. What the environment sets stays.
func Quiet(lookup func(string) (string, bool), set func(name, value string) error) error {
	for _, name := range []string{"TF_LOG", "TF_LOG_PROVIDER"} {
		if level, _ := lookup(name); level != "" {
			return nil
		}
	}
	for _, name := range []string{"TF_LOG_SDK", "TF_LOG_PROVIDER_METAL"} {
		if _, given := lookup(name); given {
			continue
		}
		if err := set(name, "off"); err != nil {
			return err
		}
	}
	return nil
}
