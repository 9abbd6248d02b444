package watch_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

// A process that is being started shares the open files of its parent for a moment. The next watch does not wait for it.
func TestRecord_isFreeAtItsEnd(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "record.jsonl")
	m := told("", 0, story()...)
	first, second := &watch.Recorder{File: file, Model: m}, &watch.Recorder{File: file, Model: m}
	if err := first.Update(m.View(at(80)), nil); err != nil {
		t.Fatal(err)
	}
	share(t, file)
	if err := first.End(m.View(at(81))); err != nil {
		t.Fatal(err)
	}
	if err := second.Update(m.View(at(82)), nil); err != nil {
		t.Error(err)
	}
}

// share keeps an open file of this process open until the test ends.
func share(t *testing.T, file string) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range all {
		if to, err := os.Readlink("/proc/self/fd/" + entry.Name()); err != nil || to != file {
			continue
		}
		number, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		shared, err := syscall.Dup(number)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(shared) })
		return
	}
	t.Fatalf("%s is not open", file)
}
