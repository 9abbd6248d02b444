package simulate_test

import "slices"

// deploys are the verbs that write the disk of a machine, or take over what is written.
var deploys = []string{"active", "rebuild", "adopt"}

// before returns what the runs had sent to a node before the last apply.
func (s *site) before(node string) (all []sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.history[:len(s.history)-len(s.verbs)] {
		if v.node == node {
			all = append(all, v)
		}
	}
	return all
}

// wasWritten reports whether a run has ever deployed a machine before the last apply.
func (s *site) wasWritten(node string) bool {
	return slices.ContainsFunc(s.before(node), func(v sent) bool { return slices.Contains(deploys, v.target) })
}

// isWritten reports whether a run has deployed a machine before the last apply, and none has undeployed it since.
func (s *site) isWritten(node string) (written bool) {
	for _, v := range s.before(node) {
		written = slices.Contains(deploys, v.target) || written && v.target != "deleted"
	}
	return written
}
