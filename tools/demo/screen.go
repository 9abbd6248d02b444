package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// The colours of the screen, as codes of SGR.
const (
	bold    = "1"
	dim     = "2"
	red     = "31"
	green   = "32"
	yellow  = "33"
	blue    = "34"
	magenta = "35"
)

// screen prints what the demo tells. It is safe for concurrent use.
type screen struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
	start  time.Time // of the clock that the tables show
	steps  int
}

// newScreen returns a screen that is coloured on a terminal, and if CLICOLOR_FORCE is set; never if NO_COLOR is.
func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &screen{out: out, colour: (terminal || os.Getenv("CLICOLOR_FORCE") != "") && os.Getenv("NO_COLOR") == ""}
}

func (s *screen) print(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
}

// paint returns a text in a colour.
func (s *screen) paint(colour, text string) string {
	if !s.colour || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (s *screen) elapsed() string { return fmt.Sprintf("%3.0fs", time.Since(s.start).Seconds()) }

func (s *screen) say(format string, args ...any) { s.print("%s", fmt.Sprintf(format, args...)) }

// step begins a part of the demo.
func (s *screen) step(text string) {
	s.steps++
	s.print("\n%s", s.paint(bold, fmt.Sprintf("%d. %s", s.steps, text)))
}

// command shows what a user would type.
func (s *screen) command(cli string, args []string) {
	s.print("%s", s.paint(dim, "   $ "+filepath.Base(cli)+" "+strings.Join(args, " ")))
}

var changes = regexp.MustCompile(`^(.* = )(.* -> )(.*)$`)

// line shows a line of the CLI.
func (s *screen) line(text string) {
	colour := ""
	switch trimmed := strings.TrimSpace(text); {
	case strings.HasPrefix(text, "Warning:"):
		colour = yellow
	case strings.HasPrefix(text, "Error:"):
		colour = red
	case strings.HasPrefix(text, "Apply complete"), strings.HasPrefix(text, "Destroy complete"):
		colour = green
	case strings.HasPrefix(trimmed, "~ rebuilds"):
		colour = red
	case changes.MatchString(text):
		colour = yellow
	}
	s.print("   %s", s.paint(colour, text))
}
