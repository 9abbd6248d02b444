// Package routine starts goroutines, and makes errors of panics. Nothing else in this module does either: a panic in a goroutine of its own
// would end the process, with the operations of all other resources in it.
package routine

import (
	"errors"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// PanicError is the error that a panic becomes.
type PanicError struct {
	Value any    // with which the code panicked
	Stack string // of the goroutine, for the log
}

// Error asks for a report.
func (e *PanicError) Error() string {
	return fmt.Sprintf("the provider has a bug, it panicked: %v. Please report this with the stack trace from the log (TF_LOG=ERROR)",
		e.Value)
}

// Go calls do in a goroutine of its own, and closes ended when do has returned. If do panics, Go calls failed before: it logs the error,
// and ends what waits for do.
func Go(do func(), failed func(*PanicError)) (ended <-chan struct{}) {
	end := make(chan struct{})
	go func() {
		defer close(end)
		defer func() {
			if err := made(recover()); err != nil {
				failed(err)
			}
		}()
		do()
	}()
	return end
}

// Each calls do for each number below n, at most as many at once as parallel says, and returns their errors. A panic is the error of its
// call.
func Each(n, parallel int, do func(i int) error) []error {
	errs := make([]error, n)
	var all errgroup.Group
	all.SetLimit(max(parallel, 1))
	for i := range n {
		all.Go(func() error {
			defer Recover(&errs[i])
			errs[i] = do(i)
			return nil
		})
	}
	_ = all.Wait() // errs has the errors
	return errs
}

// Recover sets an error to a PanicError if the function that defers it panics.
func Recover(err *error) {
	if made := made(recover()); made != nil {
		*err = made
	}
}

// Is reports whether an error is, or has as a cause, a panic.
func Is(err error) bool {
	_, is := errors.AsType[*PanicError](err)
	return is
}

// made returns the error for what recover has returned; nil if there was no panic.
func made(value any) *PanicError {
	if value == nil {
		return nil
	}
	return &PanicError{Value: value, Stack: string(debug.Stack())}
}
