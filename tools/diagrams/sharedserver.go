package main

// sharedServer shows who uses a server over time that Ironic shares with the users of OneView.
func sharedServer() *canvas {
	const user, userWidth, profile, event = margin + 24, 116, 174, 330 // columns
	const least, gap = 44, 6                                           // the height of a row, and the space to the next
	c := newCanvas("Who uses a shared server over time", "A server without a profile is free. Ironic uses it while Ironic cleans it or "+
		"runs a deployment on it, and a OneView user uses it while another profile is applied to it.")
	for _, h := range []struct {
		x    int
		text string
	}{{user, "*Used by*"}, {profile, "*Server profile*"}, {event, "*What happens*"}} {
		c.line(muted, small, "start", h.x, 34, h.text)
	}
	const top = 46
	y := top
	for _, r := range []struct {
		tone                tone
		user, profile, what string
	}{
		{safe, "free", "none", "`metal_host`: the node is enrolled and verified"},
		{ours, "Ironic", "temporary", "`metal_host`: Ironic cleans the server"},
		{safe, "free", "none", "The node is available. The first user to ask gets the server."},
		{ours, "Ironic", "blade-1 [UUID]", "`metal_oneview_profile` is created"},
		{ours, "Ironic", "blade-1 [UUID]", "`metal_deployment` is created, and runs"},
		{ours, "Ironic", "blade-1 [UUID]", "`metal_deployment` is destroyed: Ironic undeploys and cleans the server"},
		{safe, "free", "none", "`metal_oneview_profile` is destroyed"},
		{theirs, "OneView", "of a OneView user", "A OneView user takes the server. `metal oneview sync` takes the node out of service."},
		{ours, "Ironic", "temporary", "The OneView user has freed the server. `metal oneview sync` has it cleaned."},
		{safe, "free", "none", "The node is available again"},
	} {
		height := max(least, len(wrap(r.what, small, width-margin-event))*leading+8)
		c.label(r.tone, user, y, userWidth, height, "*"+r.user+"*")
		c.beside(profile, y, event-profile-14, height, r.profile)
		c.beside(event, y, width-margin-event, height, r.what)
		y += height + gap
	}
	c.arrow(muted, [2]int{margin + 6, top}, [2]int{margin + 6, y - gap})
	c.text(muted, margin, y+6, width-2*margin, "Before each step that erases, restarts or switches a server, the provider asks the "+
		"appliance who uses it. It refuses the step while a OneView user does.")
	return c
}

// beside writes a text, centred vertically.
func (c *canvas) beside(x, y, w, h int, text string) {
	lines := len(wrap(text, small, w))
	c.text(plain, x, y+(h-lines*leading)/2, w, text)
}
