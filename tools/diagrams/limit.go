package main

import "strconv"

// applyWithLimit shows the life of an apply with max_concurrent = 2, in which another run has an operation in progress first.
func applyWithLimit() *canvas {
	const left, right, top, barHeight, rowHeight = 132, width - margin, 56, 24, 36
	c := newCanvas("An apply with max_concurrent = 2", "At most two machines have an operation in progress at any time. The operation "+
		"of another run counts, too. The other machines wait, and get a slot in the order in which they began to wait.")
	c.legend(16, []entry{{theirs, "operation of another run"}, {ours, "operation of this apply"}, {muted, "waits"}})
	rows := []struct {
		name       string
		tone       tone
		start, end int // of the operation, in pixels
	}{
		{"other run", theirs, 0, 120},
		{"node-1", ours, 0, 170},
		{"node-2", ours, 120, 290},
		{"node-3", ours, 170, 300},
		{"node-4", ours, 290, 400},
		{"node-5", ours, 300, 448},
	}
	y := top
	for _, r := range rows {
		c.line(plain, small, "start", margin, y+17, r.name)
		if r.start > 0 {
			c.add(`<rect class="muted" x="%d" y="%d" width="%d" height="%d" rx="6" stroke-dasharray="4 4"/>`, left, y, r.start, barHeight)
		}
		c.rect(r.tone, left+r.start, y, r.end-r.start, barHeight)
		y += rowHeight
	}
	c.line(plain, small, "start", margin, y+17, "in progress")
	for _, s := range []struct{ start, end, busy int }{{0, 400, 2}, {400, 448, 1}} {
		c.label(plain, left+s.start, y, s.end-s.start, barHeight, "*"+strconv.Itoa(s.busy)+"*")
	}
	for i, x := range []int{145, 290, 350, 400} { // in the row of node-4
		c.number(left+x, top+4*rowHeight+barHeight/2, i+1)
	}
	y += barHeight + 14
	c.arrow(muted, [2]int{left, y}, [2]int{right, y})
	c.line(muted, small, "end", right, y+20, "time")
	y += 34
	for i, text := range []string{
		"*Wait.* Machines wait in the order in which they began. Their `timeouts` have not begun.",
		"*Get a slot.* The run takes a lock in Ironic, counts the operations of all runs and tools, and starts as many as there are free " +
			"slots. The time-out of a machine begins here.",
		"*Operation in progress.* The machine holds its slot until Ironic has ended the operation, also if the run is killed.",
		"*End.* The slot is free, and the machine that has waited longest gets it.",
	} {
		c.number(margin+12, y+12, i+1)
		y = c.text(plain, margin+36, y+2, width-2*margin-36, text) + 10
	}
	return c
}
