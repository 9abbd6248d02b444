package fakebmc

import (
	"net/http"
	"slices"
	"strings"
)

// The drives of virtual media.
const (
	driveCD  = "Cd"
	driveUSB = "Usb"
)

// mediaTypes are the kinds of media that a drive holds.
var mediaTypes = map[string][]string{driveCD: {"CD", "DVD"}, driveUSB: {"Floppy", "USBStick"}}

type medium struct {
	image     string // "" means empty
	writable  bool
	user      string
	unchecked bool // the certificate of the image's server is not verified
}

// mediaCollection lists the drives. Newer BMCs have them below the system, older ones below the manager; this one has both.
func mediaCollection(c *call) object {
	return collection(c.path, "VirtualMedia", []string{c.path + "/" + driveCD, c.path + "/" + driveUSB})
}

func mediaDocument(c *call) object {
	b := c.bmc
	b.mu.Lock()
	defer b.mu.Unlock()
	m, path := b.drives[c.drive()], c.path
	doc := document(path, "VirtualMedia.v1_4_0", "Virtual "+c.drive(), object{
		"MediaTypes": mediaTypes[c.drive()], "Inserted": m.image != "", "WriteProtected": !m.writable, "Image": nil, "ImageName": nil,
		"ConnectedVia": "NotConnected", "UserName": m.user, "VerifyCertificate": !m.unchecked, "Status": healthy(),
	})
	if m.image != "" {
		doc["Image"], doc["ImageName"], doc["ConnectedVia"] = m.image, m.image[strings.LastIndex(m.image, "/")+1:], "URI"
	}
	if !b.has(PatchMedia) {
		doc["Actions"] = object{
			"#VirtualMedia.InsertMedia": object{"target": path + "/Actions/VirtualMedia.InsertMedia"},
			"#VirtualMedia.EjectMedia":  object{"target": path + "/Actions/VirtualMedia.EjectMedia"},
		}
	}
	return doc
}

// drive returns the name of the drive in the path.
func (c *call) drive() string { return strings.Split(c.path, "/")[6] }

// hasDrive reports whether the drive in the path exists, and has the action in the path.
func hasDrive(c *call) bool {
	if strings.Contains(c.path, "/Actions/") && c.bmc.has(PatchMedia) {
		return false
	}
	return mediaTypes[c.drive()] != nil
}

func insertMedia(c *call) (reply, *fault) {
	if c.text("Image") == "" {
		return reply{}, missingParameter("Image")
	}
	if c.bmc.has(TransferProtocol) && c.text("TransferProtocolType") == "" {
		return reply{}, missingParameter("TransferProtocolType")
	}
	if c.bmc.has(USBCD) && (c.body["Inserted"] != nil || c.body["WriteProtected"] != nil) {
		return reply{}, problem(http.StatusBadRequest, "ActionParameterUnknown", "The action VirtualMedia.InsertMedia was submitted with "+
			"an invalid parameter.")
	}
	return c.insert()
}

// insert puts the image of the body into the drive.
func (c *call) insert() (reply, *fault) {
	image, drive := c.text("Image"), c.drive()
	scheme, _, _ := strings.Cut(image, "://")
	if !slices.Contains([]string{"http", "https", "nfs", "cifs"}, scheme) {
		return reply{}, badProperty("Image", image)
	}
	c.bmc.mu.Lock()
	full := c.bmc.drives[drive].image != ""
	c.bmc.mu.Unlock()
	if full {
		return reply{}, problem(http.StatusConflict, "ResourceInUse", "The change to the requested resource failed because the resource "+
			"is in use or in transition.")
	}
	if err := c.bmc.machine.Insert(drive, image); err != nil {
		return done(err)
	}
	c.bmc.mu.Lock()
	defer c.bmc.mu.Unlock()
	*c.bmc.drives[drive] = medium{image: image, writable: c.body["WriteProtected"] == false, user: c.text("UserName")}
	c.bmc.note(Inserted, image)
	return done(nil)
}

func ejectMedia(c *call) (reply, *fault) {
	if c.bmc.has(EjectBody) && !c.hasBody {
		return reply{}, problem(http.StatusUnsupportedMediaType, "MalformedJSON",
			"The request body submitted was malformed JSON and could not be parsed.")
	}
	return c.eject()
}

// eject empties the drive.
func (c *call) eject() (reply, *fault) {
	if err := c.bmc.machine.Eject(c.drive()); err != nil {
		return done(err)
	}
	c.bmc.mu.Lock()
	defer c.bmc.mu.Unlock()
	m := c.bmc.drives[c.drive()]
	if m.image != "" {
		c.bmc.note(Ejected, m.image)
	}
	*m = medium{unchecked: m.unchecked}
	return done(nil)
}

// changeMedia answers PATCH of a drive: with PatchMedia it inserts and ejects.
func changeMedia(c *call) *fault {
	if verify, given := c.body["VerifyCertificate"].(bool); given {
		c.bmc.mu.Lock()
		defer c.bmc.mu.Unlock()
		c.bmc.drives[c.drive()].unchecked = !verify
		return nil
	}
	image, given := c.body["Image"]
	if !given || !c.bmc.has(PatchMedia) {
		return notWritable("Image")
	}
	if image == nil {
		_, fault := c.eject()
		return fault
	}
	if c.body["Inserted"] != true {
		return badProperty("Inserted", c.body["Inserted"])
	}
	_, fault := c.insert()
	return fault
}
