package forecast

import (
	"errors"
	"slices"
)

// ErrEndless says that machines would wait for ever.
var ErrEndless = errors.New("no slot becomes free")

// Make makes a forecast. It returns an UnknownError if the input lacks something.
func Make(in Input) (*Result, error) {
	if in.Settings.Parallelism < 1 {
		in.Settings.Parallelism = 10
	}
	if err := in.unknown(); err != nil {
		return nil, err
	}
	result, err := run(in)
	if err != nil {
		return nil, err
	}
	result.Least = result.Total
	if slices.ContainsFunc(in.Steps, func(s Step) bool { return s.MayBe }) {
		certain := in
		certain.Steps = slices.Clone(in.Steps)
		for i := range certain.Steps {
			if certain.Steps[i].MayBe {
				certain.Steps[i].Legs, certain.Steps[i].Turn = nil, nil
			}
		}
		least, err := run(certain)
		if err != nil {
			return nil, err
		}
		result.Least = min(result.Total, least.Total)
		result.Total = max(result.Total, least.Total)
	}
	return result, nil
}

// run executes the steps in virtual time.
func run(in Input) (*Result, error) {
	e := newEngine(in)
	for e.settle(); !e.isOver(); e.settle() {
		if !e.advance() {
			return nil, e.endless()
		}
	}
	return e.result(), nil
}
