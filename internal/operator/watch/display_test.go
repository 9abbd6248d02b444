package watch_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

// tell shows samples on a display.
func tell(t *testing.T, d watch.Display, m *watch.Model, samples ...watch.Sample) watch.View {
	t.Helper()
	var v watch.View
	for _, s := range samples {
		changes := m.Add(s)
		v = m.View(s.Taken)
		if err := d.Update(v, changes); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func TestLines_tellEachChangeOnce(t *testing.T) {
	t.Parallel()
	var out, problems bytes.Buffer
	m, l := watch.NewModel("active", 8), &watch.Lines{Out: &out, Err: &problems}
	v := tell(t, l, m, story()...)
	l.Trouble(v, errors.New("503 Service Unavailable\nfor now"))
	l.Trouble(v, fmt.Errorf("list: %w", &url.Error{
		Op: "Get", URL: "http://ironic.example.com/v1/nodes?fields=uuid",
		Err: errors.New("connection refused"),
	}))
	if err := l.End(m.View(at(100))); err != nil {
		t.Fatal(err)
	}
	golden(t, "lines.txt", out.String())
	if want := "14:01:20  Ironic does not answer; trying again: 503 Service Unavailable for now\n14:01:20  Ironic does not answer; " +
		"trying again: connection refused\n"; problems.String() != want {
		t.Errorf("problems: %q, want %q", problems.String(), want)
	}
}

func TestLines_summaryOnceAMinuteAtMost(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	m, l := watch.NewModel("active", 40), &watch.Lines{Out: &out, Err: io.Discard}
	for taken := 0; taken <= 300; taken += 10 { // a machine is done every 10 seconds
		sample := watch.Sample{Taken: at(taken)}
		for n := range 1 + taken/10 {
			sample.Machines = append(sample.Machines, machine(n, "active", 10*n))
		}
		tell(t, l, m, sample)
	}
	if summaries := strings.Count(out.String(), "done, "); summaries != 6 {
		t.Errorf("%d summaries in 5 minutes, want one at first and one each minute:\n%s", summaries, out.String())
	}
}

func TestScreen_showsTheView(t *testing.T) {
	t.Parallel()
	for name, size := range map[string][2]int{"screen-80x24.txt": {80, 24}, "screen-40x10.txt": {40, 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &watch.Screen{
				Out: io.Discard, Title: "Ironic at https://ironic.example.com:6385, class baremetal",
				Size: func() (int, int) { return size[0], size[1] },
			}
			m := watch.NewModel("active", 8)
			tell(t, s, m, story()...)
			var out bytes.Buffer
			s.Out = &out
			if err := s.End(m.View(at(80))); err != nil {
				t.Fatal(err)
			}
			golden(t, name, strings.TrimPrefix(out.String(), "\x1b[?1049l\x1b[?25h"))
		})
	}
}

// Without a goal, no machine counts before an operation has begun: neither a screen nor a page counts to 0 of 0.
func TestScreen_saysThatNothingIsInProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &watch.Screen{Out: &out, Size: func() (int, int) { return 80, 24 }}
	v := tell(t, s, watch.NewModel("", 0), watch.Sample{Taken: at(0), Machines: []watch.Machine{machine(1, "available", -60)}})
	if err := s.End(v); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := (&watch.Page{File: file}).Update(v, nil); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"screen": out.String(), "page": string(page)} {
		if !strings.Contains(text, "nothing in progress") || strings.Contains(text, "0 of 0") || strings.Contains(text, "0 %") {
			t.Errorf("the %s shows\n%s", what, text)
		}
	}
}

// 500 machines fit on any terminal: no line is wider, no frame higher, and what is not shown is counted.
func TestScreen_fitsTheTerminal(t *testing.T) {
	t.Parallel()
	sample := watch.Sample{Taken: at(0)}
	for n := range 500 {
		state := []string{"deploying", "deploy failed", "available"}[n%3]
		one := machine(n, state, -n)
		one.Why.Words = strings.Repeat("a long reason ", 20)
		sample.Machines = append(sample.Machines, one)
	}
	for width := 1; width < 130; width += 7 {
		for height := 1; height < 60; height += 5 {
			var out bytes.Buffer
			s := &watch.Screen{Out: &out, Title: "Ironic at https://ironic.example.com:6385", Size: func() (int, int) {
				return width, height
			}}
			tell(t, s, watch.NewModel("active", 0), sample)
			text := out.String()
			text = text[strings.Index(text, "\x1b[H")+3:]
			lines := strings.Split(strings.NewReplacer("\x1b[K", "", "\x1b[J", "").Replace(text), "\r\n")
			if len(lines) > height {
				t.Fatalf("%d x %d: %d lines", width, height, len(lines))
			}
			for _, line := range lines {
				if utf8.RuneCountInString(line) > width {
					t.Fatalf("%d x %d: a line of %d columns: %q", width, height, utf8.RuneCountInString(line), line)
				}
			}
			if width > 60 && height > 10 && !strings.Contains(text, "and 1") {
				t.Errorf("%d x %d: the others are not counted:\n%s", width, height, text)
			}
		}
	}
}

// Ironic hangs: a screen whose last sample is old says so, before the list is an error.
func TestScreen_saysThatItIsOld(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s, m := &watch.Screen{Out: &out, Size: func() (int, int) { return 80, 24 }}, watch.NewModel("active", 0)
	last := tell(t, s, m, story()...)
	for age, want := range map[int]bool{29: false, 30: true} {
		out.Reset()
		if err := s.Tick(m.View(last.Now.Add(time.Duration(age) * time.Second))); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "Ironic's last answer is from "+last.Now.Format(time.TimeOnly)); got != want {
			t.Errorf("after %d s: %t\n%s", age, got, out.String())
		}
	}
}

func TestScreen_coloursOnlyIfWanted(t *testing.T) {
	t.Parallel()
	for _, colour := range []bool{true, false} {
		var out bytes.Buffer
		s := &watch.Screen{Out: &out, Colour: colour, Size: func() (int, int) { return 80, 24 }}
		v := tell(t, s, watch.NewModel("active", 0), story()...)
		s.Trouble(v, errors.New("connection refused"))
		if got := strings.Contains(out.String(), "\x1b[3"); got != colour {
			t.Errorf("colours: %t, want %t", got, colour)
		}
		if !strings.Contains(out.String(), "Ironic does not answer; trying again: connection refused") {
			t.Errorf("the trouble is not shown")
		}
		if strings.Contains(out.String(), "\x1b[31mno") || strings.Contains(out.String(), "\u202e") {
			t.Error("a message of Ironic controls the terminal")
		}
	}
}

func TestPage_isAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.html")
	p := &watch.Page{File: file, Title: "Ironic at https://ironic.example.com:6385, name <b>", Refresh: 10 * time.Second}
	m := watch.NewModel("active", 8)
	tell(t, p, m, story()...)
	running := read(t, file)
	if err := p.End(m.View(at(100))); err != nil {
		t.Fatal(err)
	}
	golden(t, "page.html", read(t, file))
	if !strings.Contains(running, `http-equiv="refresh" content="10"`) || strings.Contains(read(t, file), `http-equiv="refresh"`) {
		t.Error("the page must be loaded again while the watch runs, and not afterwards")
	}
	if others, err := filepath.Glob(file + "*"); len(others) != 1 {
		t.Errorf("files: %q, %v", others, err)
	}
	for _, foreign := range []string{"src=", "href=", "url(", "@import", "<script", "name <b>", "ZgotmplZ"} {
		if strings.Contains(running, foreign) {
			t.Errorf("the page has %q", foreign)
		}
	}
}

// The body of the page is well-formed.
func TestPage_isWellFormed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.html")
	tell(t, &watch.Page{File: file}, watch.NewModel("", 0), story()...)
	_, body, _ := strings.Cut(read(t, file), "</head>")
	body = strings.TrimSuffix(strings.TrimSpace(body), "</html>")
	decoder := xml.NewDecoder(strings.NewReader(body))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestPage_cannotBeWritten(t *testing.T) {
	t.Parallel()
	m := told("", 0, story()...)
	p := &watch.Page{File: filepath.Join(t.TempDir(), "no", "page.html")}
	if err := p.Update(m.View(at(80)), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error: %v", err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func ExampleView() {
	m := watch.NewModel("active", 0)
	for _, s := range story() {
		m.Add(s)
	}
	v := m.View(at(80))
	fmt.Println(v.Done, "of", v.Total)
	// Output: 3 of 6
}

// A rollout is shown on a terminal, in lines and on the page: the machine whose turn it is, a pause, and a failure that stops its group.
func TestDisplays_rollout(t *testing.T) {
	t.Parallel()
	busy, rests, broken := machine(1, "deploying", 10), machine(2, "active", 5), machine(3, "deploy failed", 15)
	busy.Turn, rests.Turn = "canary of databases", "pause of databases until 14:00:45"
	rests.Pauses = "databases\x1b[31m pauses until 14:00:45"
	broken.Turn, broken.Stops = "databases\x1b[31m waits for it", "databases\x1b[31m"
	samples := []watch.Sample{{Taken: at(0), Machines: []watch.Machine{
		machine(1, "active", -50), machine(2, "deploying", -5),
		machine(3, "deploying", -5),
	}}, {Taken: at(20), Machines: []watch.Machine{busy, rests, broken}}}
	var lines, screen bytes.Buffer
	file := filepath.Join(t.TempDir(), "page.html")
	tell(t, &watch.Lines{Out: &lines, Err: io.Discard}, watch.NewModel("", 0), samples[0], samples[1],
		watch.Sample{Taken: at(90), Machines: samples[1].Machines})
	tell(t, &watch.Screen{Out: &screen, Size: func() (int, int) { return 120, 24 }}, watch.NewModel("", 0), samples...)
	tell(t, &watch.Page{File: file}, watch.NewModel("", 0), samples...)
	for what, text := range map[string]string{"the screen": screen.String(), "the lines": lines.String(), "the page": read(t, file)} {
		for _, want := range []string{
			"deploying, canary of databases", "active, pause of databases until 14:00:45", "waits for it",
			"waits for a member that has failed",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s do not say %q:\n%s", what, want, text)
			}
		}
		if strings.Contains(text, "\x1b[31m w") {
			t.Errorf("in %s, the name of a group controls the terminal", what)
		}
	}
	if text := lines.String(); !strings.Contains(text, "�[31m pauses until 14:00:45") {
		t.Errorf("the summary does not name the pause:\n%s", text)
	}
}

// The summary names machines whose health is known and not OK, the first three of each.
func TestLines_nameMachinesInBadHealth(t *testing.T) {
	t.Parallel()
	var well, ill []watch.Machine
	for i := range 6 {
		m := machine(i, "active", 0)
		m.Health = "OK"
		well = append(well, m)
		m.Health = []string{"", "OK", "Warning", "Critical", "Critical", "Critical"}[i]
		ill = append(ill, m)
	}
	ill = append(ill, watch.Machine{ID: "7", Name: "n\x1b[31m", State: "active", Health: "Critical"})
	var lines bytes.Buffer
	tell(t, &watch.Lines{Out: &lines, Err: io.Discard}, watch.NewModel("", 0),
		watch.Sample{Taken: at(0), Machines: well}, watch.Sample{Taken: at(90), Machines: ill})
	first, last, _ := strings.Cut(lines.String(), "\n")
	if strings.Contains(first, "health") || !strings.Contains(last, "health Critical of ") || !strings.Contains(last, " and 1 more, health "+
		"Warning of "+ill[2].Name) || strings.Contains(last, "\x1b") {
		t.Errorf("%s\n%s", first, last)
	}
}
