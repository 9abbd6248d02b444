package export

import (
	"errors"

	"github.com/go-logr/logr"
)

// sink reports what the SDK logs as an error, such as a variable that it cannot read, without values: they may be secrets.
type sink struct{ report *reporter }

func (sink) Init(logr.RuntimeInfo)                  {}
func (sink) Enabled(int) bool                       { return false }
func (sink) Info(int, string, ...any)               {}
func (s sink) WithValues(...any) logr.LogSink       { return s }
func (s sink) WithName(string) logr.LogSink         { return s }
func (s sink) Error(_ error, text string, _ ...any) { s.report.Handle(errors.New(text)) }
