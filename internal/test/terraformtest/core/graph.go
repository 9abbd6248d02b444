package core

// Step is a step of a walk over a graph.
type Step struct {
	Name  string
	After []*Step
	Run   func() bool // reports whether the steps after it may follow

	done chan struct{}
	ok   bool
}

// Walk runs steps as Terraform's core does: each after those it depends on, and none after one that has failed.
func Walk(steps []*Step) {
	for _, s := range steps {
		s.done = make(chan struct{})
	}
	for _, s := range steps {
		go func() {
			defer close(s.done)
			for _, before := range s.After {
				<-before.done
			}
			for _, before := range s.After {
				if !before.ok {
					return
				}
			}
			s.ok = s.Run()
		}()
	}
	for _, s := range steps {
		<-s.done
	}
}
