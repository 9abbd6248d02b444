package terraformtest

import (
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/language"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// move returns a state in which instances have the addresses that moved blocks give them, and where those were before.
func move(prior *state.State, moves []language.Move) (moved *state.State, from map[state.Address]state.Address) {
	moved, from = prior.Clone(), map[state.Address]state.Address{}
	for again := true; again; { // a block may move what another block has moved
		again = false
		for _, one := range moves {
			source, target := state.ParseAddress(one.From), state.ParseAddress(one.To)
			for _, at := range moved.Of(source.Resource) {
				to := target
				if source.Key == "" && target.Key == "" {
					to.Key = at.Key // all instances of a resource
				} else if at != source {
					continue
				}
				if moved.Get(to) != nil {
					continue
				}
				moved.Set(to, moved.Get(at))
				moved.Set(at, nil)
				if origin, is := from[at]; is {
					from[to] = origin
					delete(from, at)
				} else {
					from[to] = at
				}
				again = true
			}
		}
	}
	return moved, from
}

// checkMoves reports moved blocks whose source is configured.
func (r *run) checkMoves() {
	for _, one := range r.c.Moves {
		source := state.ParseAddress(one.From)
		_, isThere := r.expanded[source.Resource][source]
		if isThere || source.Key == "" && len(r.expanded[source.Resource]) > 0 {
			r.Fail("Moved object still exists", "A moved block moves %s, which is configured.", one.From)
		}
	}
}
