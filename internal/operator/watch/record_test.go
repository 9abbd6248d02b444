package watch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

// recorded returns the lines of a record of the samples. Where a sample has no time, Ironic does not answer.
func recorded(t *testing.T, file string, ends bool, samples ...watch.Sample) {
	t.Helper()
	m := watch.NewModel("active", 0)
	r := &watch.Recorder{File: file, Title: "Ironic at https://ironic.example.com:6385", Model: m}
	for _, s := range samples {
		if s.Taken.IsZero() {
			r.Trouble(m.View(at(45)), errors.New("503"))
			continue
		}
		changes := m.Add(s)
		if err := r.Update(m.View(s.Taken), changes); err != nil {
			t.Fatal(err)
		}
	}
	if ends {
		if err := r.End(m.View(at(100))); err != nil {
			t.Fatal(err)
		}
	}
}

func entries(t *testing.T, file string) (lines []watch.Entry, torn int) {
	t.Helper()
	from, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	lines, torn, err = watch.ReadRecord(from)
	if err != nil {
		t.Fatal(err)
	}
	return lines, torn
}

func TestRecord_hasEachChange(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "record.jsonl")
	story := story()
	story[1].Machines[0].Instance = "8f4e0f5e-50a4-4c4f-8d4f-9d4a3f0f0b11"
	recorded(t, file, true, append(story[:3:3], append([]watch.Sample{{}, {}}, story[3:]...)...)...)
	golden(t, "record.jsonl", read(t, file))
	lines, torn := entries(t, file)
	if len(lines) != strings.Count(read(t, file), "\n") || torn != 0 {
		t.Errorf("%d entries, %d torn", len(lines), torn)
	}
}

// A watch that is killed leaves a torn line. The next one goes on in the same file, and nothing else is lost.
func TestRecord_survivesAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.jsonl")
	recorded(t, whole, false, story()...)
	text := read(t, whole)
	all, _ := entries(t, whole)
	for length := range len(text) {
		file := filepath.Join(dir, "killed.jsonl")
		if err := os.WriteFile(file, []byte(text[:length]), 0o600); err != nil {
			t.Fatal(err)
		}
		complete := strings.Count(text[:length], "\n")
		lines, torn := entries(t, file)
		isTorn := length > 0 && text[length-1] != '\n' && text[length] != '\n' // a whole object lacks its line break only
		if got, want := fmt.Sprint(torn), map[bool]string{true: "1", false: "0"}[isTorn]; got != want || len(lines) < complete {
			t.Fatalf("after %d bytes: %d entries, %s torn, want %d and %s", length, len(lines), got, complete, want)
		}
		if length%97 == 0 {
			recorded(t, file, true, story()...)
			again, torn := entries(t, file)
			if want := len(lines) + len(all) + 1; len(again) != want || torn > 1 {
				t.Fatalf("after %d bytes and another watch: %d entries, want %d; %d torn", length, len(again), want, torn)
			}
		}
	}
}

// Two watches that write to one file at the same time would make a wrong life of it. The second one does not begin.
func TestRecord_hasOneWriter(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no such lock")
	}
	file := filepath.Join(t.TempDir(), "record.jsonl")
	m := told("", 0, story()...)
	first, second := &watch.Recorder{File: file, Model: m}, &watch.Recorder{File: file, Model: m}
	if err := first.Update(m.View(at(80)), nil); err != nil {
		t.Fatal(err)
	}
	before := read(t, file)
	if err := second.Update(m.View(at(81)), nil); err == nil || !strings.Contains(err.Error(), "another metal watch records to "+file) {
		t.Errorf("error: %v", err)
	}
	if err := second.End(m.View(at(82))); err != nil || read(t, file) != before {
		t.Errorf("%v: the second one has written:\n%s", err, strings.TrimPrefix(read(t, file), before))
	}
	if err := first.End(m.View(at(83))); err != nil {
		t.Error(err)
	}
	if err := second.Update(m.View(at(84)), nil); err != nil {
		t.Errorf("after the end of the first one: %v", err)
	}
}

func TestRecord_cannotBeWritten(t *testing.T) {
	t.Parallel()
	m := told("", 0, story()...)
	r := &watch.Recorder{File: filepath.Join(t.TempDir(), "no", "record"), Model: m}
	if err := r.Update(m.View(at(80)), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error: %v", err)
	}
}

// The guide says how fast a record grows.
func TestRecord_growth(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "record.jsonl")
	samples := []watch.Sample{{Taken: at(0)}}
	for round, state := range []string{"available", "deploying", "wait call-back", "deploying", "active"} {
		s := watch.Sample{Taken: at(10 * (round + 1))}
		for n := range 200 {
			one := machine(n, state, 10*(round+1)-3)
			one.ID, one.Instance = "8f4e0f5e-50a4-4c4f-8d4f-9d4a3f0f0b11", "7c5f2b5e-7a0c-4a55-9d0e-3f6f5e8f4a11"
			one.ID = fmt.Sprintf("%s%04d", one.ID[:32], n)
			one.Since = one.Since.Add(123456 * time.Microsecond)
			s.Machines = append(s.Machines, one)
		}
		samples = append(samples, s)
	}
	recorded(t, file, true, samples...)
	if size := len(read(t, file)); size < 150_000 || size > 250_000 {
		t.Errorf("1,000 changes are %d bytes, and the guide says about 200 kB", size)
	}
}
