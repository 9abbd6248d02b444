package simulate_test

// parallelism is how many resources Terraform works on at once.
const parallelism = 10

// step is a step of a walk over a graph.
type step struct {
	name  string
	after []*step
	run   func() bool // reports whether the steps after it may follow

	done chan struct{}
	ok   bool
}

// walk runs steps as Terraform's core does: each after those it depends on, ten at once, and none after one that has failed.
func walk(steps []*step) {
	slots := make(chan struct{}, parallelism)
	for _, s := range steps {
		s.done = make(chan struct{})
	}
	for _, s := range steps {
		go func() {
			defer close(s.done)
			for _, before := range s.after {
				<-before.done
			}
			for _, before := range s.after {
				if !before.ok {
					return
				}
			}
			slots <- struct{}{}
			defer func() { <-slots }()
			s.ok = s.run()
		}()
	}
	for _, s := range steps {
		<-s.done
	}
}
