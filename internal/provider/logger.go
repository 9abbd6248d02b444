package provider

import (
	"context"
	"log/slog"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// tflogHandler writes the log records of the packages below framework to Terraform's log (TF_LOG_PROVIDER).
type tflogHandler struct{}

func (tflogHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle writes a record with the logger of the RPC that ctx belongs to.
func (tflogHandler) Handle(ctx context.Context, r slog.Record) error {
	fields := map[string]any{}
	r.Attrs(func(a slog.Attr) bool {
		fields[a.Key] = a.Value.String()
		return true
	})
	write := tflog.Debug
	switch {
	case r.Level >= slog.LevelError:
		write = tflog.Error
	case r.Level >= slog.LevelWarn:
		write = tflog.Warn
	case r.Level >= slog.LevelInfo:
		write = tflog.Info
	}
	write(ctx, r.Message, fields)
	return nil
}

// WithAttrs returns the handler unchanged. The packages below framework use neither WithAttrs nor WithGroup.
func (h tflogHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h tflogHandler) WithGroup(string) slog.Handler      { return h }
