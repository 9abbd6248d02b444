package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// measureMemory prints how much memory the provider takes at most while many hosts are planned.
func (b *bench) measureMemory(ctx context.Context, print printer) error {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		return errors.New("memory is read from /proc, which is not there")
	}
	f, err := b.newFleet(ctx, b.memoryHosts)
	if err != nil {
		return err
	}
	defer f.stop()
	b.say("plan %d hosts and watch the provider's memory", b.memoryHosts)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	peak := make(chan int, 1)
	go func() { peak <- watchMemory(watching, filepath.Join(b.provider, "terraform-provider-metal")) }()
	took, err := f.emptyPlan(ctx, b.provider)
	if err != nil {
		return err
	}
	stop()
	most := <-peak
	if most == 0 {
		return errors.New("no process of the provider was seen")
	}
	print("\n### Memory, plan of %d hosts\n\n| provider's resident memory at most | time of the plan |\n|---:|---:|\n| %d MB | %.0f s |\n",
		b.memoryHosts, most*1024/1_000_000, took.wall.Seconds())
	return nil
}

// watchMemory returns, when ctx is done, the most resident memory in kB (VmHWM) that a process of a program has had.
func watchMemory(ctx context.Context, program string) (most int) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return most
		case <-ticker.C:
		}
		processes, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is right
		for _, link := range processes {
			if path, err := os.Readlink(link); err == nil && path == program {
				most = max(most, peakMemory(filepath.Dir(link)))
			}
		}
	}
}

// peakMemory reads VmHWM of a process in /proc; 0 when the process has ended.
func peakMemory(process string) int {
	status, err := os.ReadFile(filepath.Join(process, "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "VmHWM:"); found {
			kilobytes, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(text), " kB"))
			return kilobytes
		}
	}
	return 0
}
