package fakebmc

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

type volume struct {
	id, name, raid string
	bytes          int64
	drives         []string // paths
}

// raidLevels are the RAID types, with the least number of drives and the number of drives' worth of capacity that they cost.
var raidLevels = map[string]struct {
	least  int
	usable func(drives int) int
}{
	"RAID0":  {1, func(n int) int { return n }},
	"RAID1":  {2, func(int) int { return 1 }},
	"RAID5":  {3, func(n int) int { return n - 1 }},
	"RAID6":  {4, func(n int) int { return n - 2 }},
	"RAID10": {4, func(n int) int { return n / 2 }},
}

// volumeTypes are the names of RAID levels before Volume.v1_3_1.
var volumeTypes = map[string]string{
	"NonRedundant": "RAID0", "Mirrored": "RAID1", "StripedWithParity": "RAID5", "SpannedMirrors": "RAID10",
}

// When a change of volumes happens.
const (
	applyNow     = "Immediate"
	applyOnReset = "OnReset"
)

// applyTimes are those that the controller supports.
func (b *BMC) applyTimes() []string {
	if b.has(VolumesOnReset) {
		return []string{applyOnReset}
	}
	return []string{applyNow, applyOnReset}
}

const (
	storageName = "RAID.1"
	timeKey     = "@Redfish.OperationApplyTime"
)

func (b *BMC) storage() string { return b.Path() + "/Storage/" + storageName }

func (b *BMC) drivePath(n int) string { return fmt.Sprintf("%s/Drives/%d", b.storage(), n) }

func (b *BMC) drivePaths() []string {
	var paths []string
	for n := range b.config.Drives {
		paths = append(paths, b.drivePath(n))
	}
	return paths
}

func storageDocument(c *call) object {
	b := c.bmc
	return document(b.storage(), "Storage.v1_8_1", "RAID controller", object{
		"Status": healthy(), "Drives": links(b.drivePaths()...), "Drives@odata.count": len(b.config.Drives),
		"Volumes": link(b.storage() + "/Volumes"),
		"StorageControllers": []object{{
			"@odata.id": b.storage() + "#/StorageControllers/0", "MemberId": "0", "Name": "Contoso RAID", "Status": healthy(),
			"SpeedGbps":                    12,
			"SupportedControllerProtocols": []string{"PCIe"}, "SupportedDeviceProtocols": []string{"SAS", "SATA"},
			"SupportedRAIDTypes": []string{"RAID0", "RAID1", "RAID5", "RAID6", "RAID10"},
		}},
	})
}

// driveIndex returns the number of the drive in the path; -1 if there is none.
func driveIndex(c *call) int { return slices.Index(c.bmc.drivePaths(), c.path) }

func driveDocument(c *call) object {
	n := driveIndex(c)
	return document(c.path, "Drive.v1_11_0", fmt.Sprintf("Disk %d", n), object{
		"CapacityBytes": c.bmc.config.Drives[n], "MediaType": "SSD", "Protocol": "SAS", "Status": healthy(), "BlockSizeBytes": 512,
		"Manufacturer": "Contoso", "Model": "C123", "SerialNumber": fmt.Sprintf("%s-%d", c.bmc.config.Serial, n),
	})
}

func (b *BMC) volumePaths() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var paths []string
	for _, v := range b.volumes {
		paths = append(paths, b.storage()+"/Volumes/"+v.id)
	}
	return paths
}

func volumesDocument(c *call) object {
	doc := collection(c.path, "Volume", c.bmc.volumePaths())
	doc["@Redfish.OperationApplyTimeSupport"] = object{"SupportedValues": c.bmc.applyTimes()}
	return doc
}

// volumeNamed returns the volume in the path; nil if there is none.
func volumeNamed(c *call) *volume {
	id := strings.Split(c.path, "/")[8]
	c.bmc.mu.Lock()
	defer c.bmc.mu.Unlock()
	for _, v := range c.bmc.volumes {
		if v.id == id {
			return v
		}
	}
	return nil
}

func volumeDocument(c *call) object {
	v := volumeNamed(c)
	if v == nil {
		return nil
	}
	return document(c.path, "Volume.v1_5_0", v.name, object{
		"CapacityBytes": v.bytes, "RAIDType": v.raid, "Status": healthy(), "BlockSizeBytes": 512, "Encrypted": false,
		"Identifiers": []object{{"DurableNameFormat": "UUID", "DurableName": c.bmc.uuid(v.id)}},
		"Links":       object{"Drives": links(v.drives...)},
		"Actions": object{"#Volume.Initialize": object{
			"target":                                 c.path + "/Actions/Volume.Initialize",
			"InitializeType@Redfish.AllowableValues": []string{"Fast", "Slow"},
		}},
	})
}

func createVolume(c *call) (reply, *fault) {
	b := c.bmc
	made := &volume{name: c.text("Name"), raid: c.text("RAIDType")}
	if made.raid == "" {
		made.raid = volumeTypes[c.text("VolumeType")]
	}
	level, known := raidLevels[made.raid]
	if !known {
		return reply{}, badProperty("RAIDType", c.body["RAIDType"])
	}
	if fault := made.choose(c, level.least); fault != nil {
		return reply{}, fault
	}
	smallest := int64(0)
	for n, size := range b.config.Drives {
		if slices.Contains(made.drives, b.drivePath(n)) && (smallest == 0 || size < smallest) {
			smallest = size
		}
	}
	most := smallest * int64(level.usable(len(made.drives)))
	made.bytes = most
	if size, given := c.body["CapacityBytes"].(float64); given {
		made.bytes = int64(size)
	}
	if made.bytes <= 0 || made.bytes > most {
		return reply{}, badProperty("CapacityBytes", c.body["CapacityBytes"])
	}
	b.mu.Lock()
	b.sequence++
	made.id = fmt.Sprint(b.sequence)
	b.mu.Unlock()
	if made.name == "" {
		made.name = "Volume " + made.id
	}
	return c.when("create volume "+made.name, reply{
		status: http.StatusCreated, header: map[string]string{"Location": c.path + "/" + made.id},
	}, func() { b.volumes = append(b.volumes, made) })
}

// choose gives the volume the drives that the request names, or the first free ones, least of them. It returns a fault if a named drive is
// not free, or if there are too few.
func (v *volume) choose(c *call, least int) *fault {
	b, used := c.bmc, []string{}
	b.mu.Lock()
	for _, other := range b.volumes {
		used = append(used, other.drives...)
	}
	b.mu.Unlock()
	inBody, _ := c.body["Links"].(object)
	if inBody == nil {
		inBody = c.body // as before Volume.v1_4_0
	}
	wanted, _ := inBody["Drives"].([]any)
	for _, item := range wanted {
		drive, _ := item.(object)
		path, _ := drive["@odata.id"].(string)
		if !slices.Contains(b.drivePaths(), path) || slices.Contains(used, path) {
			return badProperty("Links/Drives", path)
		}
		v.drives = append(v.drives, path)
	}
	for _, path := range b.drivePaths() {
		if len(wanted) == 0 && len(v.drives) < least && !slices.Contains(used, path) {
			v.drives = append(v.drives, path)
		}
	}
	if len(v.drives) < least {
		return problem(http.StatusBadRequest, "ResourceInUse", "The RAID type needs %d free drives.", least)
	}
	return nil
}

func deleteVolume(c *call) (reply, *fault) {
	gone := volumeNamed(c)
	return c.when("delete volume "+gone.name, reply{status: http.StatusNoContent}, func() {
		c.bmc.volumes = slices.DeleteFunc(c.bmc.volumes, func(v *volume) bool { return v == gone })
	})
}

// when makes a change at once, or, with the apply time OnReset or VolumesOnReset, at the next boot: then the answer is a task.
func (c *call) when(what string, answer reply, change func()) (reply, *fault) {
	at := c.text(timeKey)
	switch {
	case at != "" && !slices.Contains(c.bmc.applyTimes(), at):
		return reply{}, badProperty(timeKey, at)
	case at == applyOnReset || c.bmc.has(VolumesOnReset):
		t := c.begin(what)
		c.bmc.mu.Lock()
		defer c.bmc.mu.Unlock()
		c.bmc.staged = append(c.bmc.staged, func() {
			change()
			c.bmc.note(Configured, what)
			t.end()
		})
		return t.accepted(), nil
	}
	c.bmc.mu.Lock()
	defer c.bmc.mu.Unlock()
	change()
	c.bmc.note(Configured, what)
	return answer, nil
}
