package sitetest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// Logbook keeps what a site logs at INFO and above, without times.
type Logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Lines returns the lines that contain all of the given texts.
func (l *Logbook) Lines(texts ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.text.String()) {
		wanted := true
		for _, text := range texts {
			wanted = wanted && strings.Contains(line, text)
		}
		if wanted {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// Record lets a site log into the logbook.
func (l *Logbook) Record(cfg *machine.Config) {
	cfg.Logger = slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}
