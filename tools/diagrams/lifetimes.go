package main

// lifetimes shows host, allocation and deployment, and what destroying each of them does.
func lifetimes() *canvas {
	const left, right, w, h, gap = margin, 310, 250, 96, 42
	c := newCanvas("Host, allocation and deployment", "A metal_allocation reserves a metal_host, and a metal_deployment runs on it. "+
		"Destroying the deployment undeploys and cleans the machine. Destroying the allocation frees it. Destroying the host removes the "+
		"node from Ironic.")
	c.line(plain, size, "start", left, 36, "*The resource*")
	c.line(plain, size, "start", right, 36, "*Destroying it*")
	rows := []struct {
		name, what string
		tone       tone
		destroying string
		next       string
	}{
		{
			"metal_host", "A machine that Ironic knows: node, ports, BMC, settings", safe,
			"removes the node from Ironic. The machine is not touched. Refused while it is deployed or reserved.",
			"reserved, by class and traits, by",
		},
		{
			"metal_allocation", "The reservation of an available machine", safe,
			"frees the machine for other users. Refused while something is deployed on it.",
			"needed by",
		},
		{
			"metal_deployment", "What runs on the machine: an image, or a live ISO", erase,
			"undeploys and cleans the machine: *its data is lost.* Host and allocation stay.", "",
		},
	}
	y := 52
	for _, r := range rows {
		c.rect(plain, left, y, w, h)
		c.line(plain, size, "start", left+padding, y+28, "*"+r.name+"*")
		c.text(muted, left+padding, y+40, w-2*padding, r.what)
		c.box(r.tone, right, y, width-margin-right, h, r.destroying)
		c.link(r.tone, [2]int{left + w, y + h/2}, [2]int{right, y + h/2})
		if r.next != "" {
			c.arrow(plain, [2]int{left + 30, y + h}, [2]int{left + 30, y + h + gap})
			c.text(muted, left+46, y+h+10, w, r.next)
		}
		y += h + gap
	}
	c.text(muted, left, y-gap+16, width-2*margin,
		"Terraform creates from top to bottom, and destroys from bottom to top. With `on_destroy = \"forget\"`, a host or a deployment "+
			"leaves the state and stays in Ironic.")
	return c
}
