package main

// deploymentChanges shows the four things that a change of a deployment can do.
func deploymentChanges() *canvas {
	const first, second, third, height = margin + 14, 238, 414, 112 // columns, and the height of a row
	c := newCanvas("What a change of a deployment does", "A change does nothing, restarts the machine, rebuilds it in place, which wipes "+
		"the root disk, or replaces the deployment, which undeploys, cleans and deploys the machine. The plan shows which.")
	for _, h := range []struct {
		x    int
		text string
	}{{first, "*You change*"}, {second, "*The plan shows*"}, {third, "*The machine*"}} {
		c.line(muted, small, "start", h.x, 34, h.text)
	}
	y := 46
	for _, r := range []struct {
		tone                       tone
		name, changed, shown, what string
	}{
		{
			safe, "Nothing", "`protected`, `timeouts`; the image, with `on_change = \"ignore\"`",
			"an update that wipes nothing, or no change", "runs on",
		},
		{
			restart, "Restart", "`restart_triggers`; a live ISO that concerns the machine",
			"`restarts = 0 -> 1` and a warning", "is switched off and on. Its disks stay as they are.",
		},
		{
			erase, "Rebuild", "image, config drive and other content; `rebuild_triggers`",
			"`rebuilds = 0 -> 1` and a warning", "*Its root disk is wiped.* It stays reserved, and gets the image again.",
		},
		{
			erase, "Replace", "the same, with `on_change = \"replace\"`; another node; `-replace`",
			"`-/+` must be replaced; `prevent_destroy` stops it", "is undeployed, cleaned and deployed. *Its data is lost.*",
		},
	} {
		c.rect(r.tone, margin, y, width-2*margin, height)
		c.line(r.tone, 17, "start", first, y+28, "*"+r.name+"*")
		c.text(r.tone, first, y+40, second-first-16, r.changed)
		c.text(r.tone, second, y+40, third-second-16, r.shown)
		c.text(r.tone, third, y+40, width-margin-third-10, r.what)
		y += height + 10
	}
	c.text(muted, margin, y+4, width-2*margin, "With `protected = true`, a plan that would rebuild or undeploy the machine is an error, "+
		"and nothing is wiped.")
	return c
}
