package provider

// Quiet disables the log of this process if the CLI does not keep it, that is without TF_LOG and TF_LOG_PROVIDER. Otherwise the
// SDK writes every trace line, and the CLI reads and discards it, which takes 45 % of the processor time of a plan. Quiet keeps a
// log level that is set in the environment.
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
