package simulate_test

import "github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"

const parallelism = 10

// walk runs steps as Terraform's core does: each after those it depends on, ten at once, and none after one that has failed.
func walk(steps []*core.Step) {
	slots := make(chan struct{}, parallelism)
	for _, s := range steps {
		run := s.Run
		s.Run = func() bool {
			slots <- struct{}{}
			defer func() { <-slots }()
			return run()
		}
	}
	core.Walk(steps)
}
