package main

// The measures of the diagram of states: states in the middle, and boxes with what happens on both sides.
const (
	stateWidth, stateHeight = 140, 44
	stateLeft               = (width - stateWidth) / 2
	besideWidth, beside     = 185, 64
	besideRight             = width - margin - besideWidth
)

// hostStates shows the states of a host, and which steps between them erase data.
func hostStates() *canvas {
	const enroll, manageable, available, active = 50, 176, 340, 508 // where the states are
	c := newCanvas("The states of a host", "A host goes from enroll over manageable and available to active. Cleaning on the way to "+
		"available, deploying, rebuilding and undeploying erase data. Inspecting and restarting boot the machine. Verifying and going "+
		"back to manageable do neither.")

	c.rect(muted, 10, 12, width-20, available+stateHeight)
	c.line(muted, small, "start", margin, 36, "`metal_host`, as far as `target_state` says")
	c.rect(muted, 10, available+stateHeight+20, width-20, 184)
	c.line(muted, small, "start", margin, available+stateHeight+44, "`metal_deployment`")

	c.step(safe, enroll, manageable, "*Verify:* Ironic reaches the BMC")
	c.step(erase, manageable, available, "*Clean:* erases what the clean steps erase")
	c.back(safe, available, manageable, "*Back:* nothing is erased")
	c.step(erase, available, active, "*Deploy:* writes the image to the disk")
	c.back(erase, active, available, "*Undeploy, clean:* the data is lost")

	c.around(restart, besideRight, manageable, "*Inspect* once, with `inspect = true`")
	c.around(erase, margin, active, "*Rebuild:* the root disk is wiped")
	c.around(restart, besideRight, active, "*Restart:* the disks stay")

	c.label(plain, stateLeft, enroll, stateWidth, stateHeight, "*enroll*")
	c.label(plain, stateLeft, manageable, stateWidth, stateHeight, "*manageable*")
	c.label(plain, stateLeft, available, stateWidth, stateHeight, "*available*")
	c.label(plain, stateLeft, active, stateWidth, stateHeight, "*active*")

	y := c.legend(604, []entry{{erase, "erases data"}, {restart, "boots the machine, erases nothing"}, {safe, "does neither"}})
	c.text(muted, margin, y, width-2*margin, "The site decides what its clean steps erase. With `automated_clean = false` on a host, "+
		"nothing is cleaned.")
	return c
}

// step draws the way down from a state to the next, with what happens at its left.
func (c *canvas) step(t tone, from, to int, text string) {
	x := stateLeft + stateWidth/3
	c.arrow(t, [2]int{x, from + stateHeight}, [2]int{x, to})
	middle := (from + stateHeight + to) / 2
	c.link(t, [2]int{margin + besideWidth, middle}, [2]int{x, middle})
	c.box(t, margin, middle-beside/2, besideWidth, beside, text)
}

// back draws the way up, with what happens at its right.
func (c *canvas) back(t tone, from, to int, text string) {
	x := stateLeft + 2*stateWidth/3
	c.arrow(t, [2]int{x, from}, [2]int{x, to + stateHeight})
	middle := (to + stateHeight + from) / 2
	c.link(t, [2]int{x, middle}, [2]int{besideRight, middle})
	c.box(t, besideRight, middle-beside/2, besideWidth, beside, text)
}

// around draws what happens in a state that stays.
func (c *canvas) around(t tone, x, state int, text string) {
	middle := state + stateHeight/2
	near, far := stateLeft, margin+besideWidth
	if x > stateLeft {
		near, far = stateLeft+stateWidth, besideRight
	}
	c.link(t, [2]int{near, middle}, [2]int{far, middle})
	c.box(t, x, middle-beside/2, besideWidth, beside, text)
}
