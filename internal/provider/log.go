package provider

import (
	"context"
	"log/slog"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Quiet disables the log of this process if the CLI does not keep it, that is without TF_LOG and TF_LOG_PROVIDER. Otherwise the
// SDK writes every trace line, and the CLI reads and discards it, which takes 45 % of the processor time of a plan. Quiet keeps a
// log level that is set in the environment.
func Quiet(lookup func(string) (string, bool), set func(name, value string) error) error {
	for _, name := range []string{"TF_LOG", "TF_LOG_PROVIDER"} {
		if level, _ := lookup(name); level != "" {
			return nil
		}
	}
	for _, name := range []string{"TF_LOG_SDK", "TF_LOG_PROVIDER_METAL"} {
		if _, given := lookup(name); given {
			continue
		}
		if err := set(name, "off"); err != nil {
			return err
		}
	}
	return nil
}

// tflogHandler writes the log records of the packages below framework to Terraform's log (TF_LOG_PROVIDER).
// It removes secrets, and makes the texts printable.
type tflogHandler struct{ secrets *rest.Secrets }

func (tflogHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle writes a record with the logger of the RPC that ctx belongs to.
func (h tflogHandler) Handle(ctx context.Context, r slog.Record) error {
	fields := map[string]any{}
	r.Attrs(func(a slog.Attr) bool {
		fields[a.Key] = h.clean(a.Value.String())
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
	write(ctx, h.clean(r.Message), fields)
	return nil
}

func (h tflogHandler) clean(text string) string { return rest.OneLine(h.secrets.Redact(text)) }

// WithAttrs returns the handler unchanged. The packages below framework use neither WithAttrs nor WithGroup.
func (h tflogHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h tflogHandler) WithGroup(string) slog.Handler      { return h }
