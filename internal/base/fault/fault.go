// Package fault has the error of clients, locks, lists and settings. That of an operation on a machine is in machine/failure.
package fault

import "slices"

// Kind says what an error is about, for code that goes on differently after it. Each is declared beside the code that makes the error.
type Kind string

// Error is an error of a server, a lock or a setting. What it says and advises is written where it is made.
type Error struct {
	Kind   Kind
	Fact   string // what is the case
	Advice string // what to do; "" if the fact says it
	About  any    // facts for the code that handles errors of the kind
	Err    error  // the cause; nil if there is none

	Elsewhere bool // the cause is about another object than the requested one
}

// Error returns the fact.
func (e *Error) Error() string { return e.Fact }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// As returns the first Error of one of the given kinds in the tree of err; nil if there is none.
func As(err error, kinds ...Kind) *Error {
	return First(err, func(e *Error) bool { return slices.Contains(kinds, e.Kind) })
}

// Is reports whether err is an Error of a kind, or has one as a cause.
func Is(err error, kind Kind) bool { return As(err, kind) != nil }

// AboutOf returns About of the first Error of a kind in the tree of err; the zero value if there is none.
func AboutOf[T any](err error, kind Kind) (about T) {
	if e := As(err, kind); e != nil {
		about, _ = e.About.(T)
	}
	return about
}

// IsElsewhere reports whether the cause in the tree of err is about another object than the requested one.
func IsElsewhere(err error) bool {
	return First(err, func(e *Error) bool { return e.Elsewhere }) != nil
}

// First returns the first error of a type in the tree of err for which a condition holds; the zero value if there is none.
func First[E error](err error, holds func(E) bool) (none E) {
	found, _ := search(err, holds)
	return found
}

// search is First that also reports whether there is one.
func search[E error](err error, holds func(E) bool) (found E, ok bool) {
	if e, is := err.(E); is && holds(e) { //nolint:errorlint // it is one node of the tree
		return e, true
	}
	switch x := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return search(x.Unwrap(), holds)
	case interface{ Unwrap() []error }:
		for _, cause := range x.Unwrap() {
			if found, ok = search(cause, holds); ok {
				return found, true
			}
		}
	}
	return found, false
}
