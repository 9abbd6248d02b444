"""What sushy and ipmitool can do with a BMC that has one machine, m1, with the user admin."""

import os
import subprocess
import unittest


class Sushy(unittest.TestCase):
    """sushy, over Redfish"""

    @classmethod
    def setUpClass(cls):
        import sushy
        cls.sushy = sushy
        cls.root = sushy.Sushy(os.environ["REDFISH"], username="admin", password="secret")
        cls.system = cls.root.get_system("/redfish/v1/Systems/m1")
        cls.manager = cls.root.get_manager("/redfish/v1/Managers/m1")
        cls.chassis = cls.root.get_chassis("/redfish/v1/Chassis/m1")

    def test_collections(self):
        """collections"""
        for collection in (self.root.get_system_collection(), self.root.get_manager_collection(),
                           self.root.get_chassis_collection()):
            self.assertEqual(["m1"], [m.identity for m in collection.get_members()])

    def test_power(self):
        """power"""
        for kind, want in ((self.sushy.RESET_TYPE_ON, "on"), (self.sushy.RESET_TYPE_FORCE_RESTART, "on"),
                           (self.sushy.RESET_TYPE_FORCE_OFF, "off")):
            self.system.reset_system(kind)
            self.system.refresh()
            self.assertEqual(want, self.system.power_state.value.lower())

    def test_boot(self):
        """boot override"""
        self.system.set_system_boot_options(
            self.sushy.BOOT_SOURCE_TARGET_PXE, enabled=self.sushy.BOOT_SOURCE_ENABLED_ONCE, mode=self.sushy.BOOT_SOURCE_MODE_UEFI)
        self.system.refresh()
        self.assertEqual(self.sushy.BOOT_SOURCE_TARGET_PXE, self.system.boot.target)

    def test_indicator(self):
        """indicator LED"""
        self.system.set_indicator_led(self.sushy.INDICATOR_LED_LIT)
        self.chassis.set_indicator_led(self.sushy.INDICATOR_LED_OFF)

    def test_inventory(self):
        """inventory"""
        self.assertEqual(64, self.system.memory_summary.size_gib)
        self.assertEqual(16, self.system.processors.summary.count)
        self.assertEqual(1, len(self.system.ethernet_interfaces.summary))
        self.assertTrue(self.system.serial_number)

    def test_bios(self):
        """BIOS settings"""
        self.assertEqual("Uefi", self.system.bios.attributes["BootMode"])
        self.system.bios.set_attribute("NumLock", False)
        self.system.bios.reset_bios()
        self.assertTrue(self.system.bios.get_attribute_registry().registry_entries.attributes)

    def test_secure_boot(self):
        """secure boot"""
        self.system.secure_boot.set_enabled(True)
        self.system.secure_boot.set_enabled(False)

    def test_media(self):
        """virtual media"""
        drive = self.manager.virtual_media.get_members()[0]
        drive.insert_media("http://images/a.iso")
        drive.refresh()
        self.assertEqual("http://images/a.iso", drive.image)
        drive.eject_media()

    def test_storage(self):
        """storage"""
        storage = self.system.storage.get_members()[0]
        self.assertEqual(2, len(storage.drives))
        storage.volumes.create({"RAIDType": "RAID1", "Links": {"Drives": [{"@odata.id": d.path} for d in storage.drives]}})

    def test_power_supplies(self):
        """power supplies and fans"""
        self.assertEqual(1, len(self.chassis.power.power_supplies))
        self.assertEqual(1, len(self.chassis.thermal.fans))

    def test_update(self):
        """firmware"""
        service = self.root.get_update_service()
        self.assertTrue(service.firmware_inventory.get_members())
        service.simple_update("http://images/bmc-2.0.bin", targets=["/redfish/v1/Systems/m1"])

    def test_registries(self):
        """registries and tasks"""
        self.assertTrue(self.root.registries)
        self.root.get_task_service()

    def test_sessions(self):
        """sessions"""
        self.root.get_session_service().create_session("admin", "secret")
        self.assertRaises(self.sushy.exceptions.AccessError, self.root.get_session_service().create_session, "admin", "wrong")


def command(words, mention):
    """returns a test of a command of ipmitool"""
    def test(self):
        said = subprocess.run(["ipmitool", "-I", "lanplus", "-H", "127.0.0.1", "-p", os.environ["IPMI_PORT"], "-U", "admin", "-P",
                               "secret", "-R", "4", "-N", "1", *words.split()], capture_output=True, text=True, check=False)
        self.assertEqual((0, True), (said.returncode, mention in said.stdout + said.stderr), said)
    test.__doc__ = words
    return test


class IPMITool(unittest.TestCase):
    """ipmitool, over IPMI"""


for number, (said, what) in enumerate((
        ("mc info", "IPMI Version              : 2.0"), ("mc guid", "System GUID"), ("chassis status", "System Power         : off"),
        ("power status", "off"), ("power on", "Up/On"), ("power reset", "Reset"), ("power cycle", "Cycle"), ("power diag", "Diag"),
        ("chassis bootdev pxe options=efiboot", "Set Boot Device to pxe"), ("chassis bootparam get 5", "Force PXE"),
        ("power soft", "Soft"), ("power off", "Down/Off"), ("sdr info", "Record Count                        : 1"), ("sdr list all", "BMC"),
        ("sensor", ""), ("sel info", "Entries          : 0"), ("sel list", "SEL has no entries"), ("sel time get", ""),
        ("fru print", "Product Manufacturer  : Contoso"), ("lan print 1", "Static Address"), ("user list 1", "ADMINISTRATOR"),
        ("user summary 1", "Enabled User Count  : 1"), ("channel info 1", "802.3 LAN"), ("channel getaccess 1 2", "ADMINISTRATOR"))):
    setattr(IPMITool, f"test_{number:02}", command(said, what))
