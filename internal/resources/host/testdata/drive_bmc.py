"""Drives a BMC with sushy, the library of Ironic. Arguments: base URL, CA file or "", path of the system, user name, password.

It stops at the first thing on which sushy and the BMC disagree.
"""
import sys
import time

import sushy
from sushy.resources import settings

url, ca, path, username, password = sys.argv[1:]


def check(what, got, want):
    if got != want:
        sys.exit("%s: %r, want %r" % (what, got, want))


def until(what, done):
    for _ in range(100):
        if done():
            return
        time.sleep(0.1)
    sys.exit("waited 10 s for " + what)


def refused(what, error, do):
    try:
        do()
    except error:
        return
    sys.exit(what + " was not refused")


verify = ca or False
refused("a wrong password", sushy.exceptions.AccessError,
        lambda: sushy.Sushy(url, verify=verify, auth=sushy.auth.SessionAuth(username, "wrong")).get_system(path))
basic = sushy.Sushy(url, verify=verify, auth=sushy.auth.BasicAuth(username, password))
check("path with basic authentication", basic.get_system(path).path, path)
bmc = sushy.Sushy(url, verify=verify, auth=sushy.auth.SessionAuth(username, password))
system = bmc.get_system(path)

# Power
check("reset types", {r.value for r in system.get_allowed_reset_system_values()},
      {"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PushPowerButton", "Nmi"})


def power(reset, want):
    system.reset_system(reset)
    until("power %s after %s" % (want, reset), lambda: system.refresh() or system.power_state == want)


power(sushy.RESET_ON, sushy.POWER_STATE_ON)
power(sushy.RESET_GRACEFUL_SHUTDOWN, sushy.POWER_STATE_OFF)
power(sushy.RESET_PUSH_POWER_BUTTON, sushy.POWER_STATE_ON)
for reset in (sushy.RESET_FORCE_RESTART, sushy.RESET_GRACEFUL_RESTART, sushy.RESET_NMI):
    power(reset, sushy.POWER_STATE_ON)
power(sushy.RESET_FORCE_OFF, sushy.POWER_STATE_OFF)

# Boot
system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_PXE, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE)
system.refresh()
check("boot target", system.boot.target, sushy.BOOT_SOURCE_TARGET_PXE)
power(sushy.RESET_ON, sushy.POWER_STATE_ON)
check("boot target after the boot", system.boot.enabled, sushy.BOOT_SOURCE_ENABLED_DISABLED)
system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_HDD, enabled=sushy.BOOT_SOURCE_ENABLED_CONTINUOUS, mode=sushy.BOOT_SOURCE_MODE_BIOS)
power(sushy.RESET_FORCE_RESTART, sushy.POWER_STATE_ON)
system.refresh()
check("continuous target after the boot", (system.boot.target, system.boot.mode), (sushy.BOOT_SOURCE_TARGET_HDD, sushy.BOOT_SOURCE_MODE_BIOS))
refused("secure boot in BIOS mode", sushy.exceptions.BadRequestError, lambda: system.secure_boot.set_enabled(True))
system.set_system_boot_options(mode=sushy.BOOT_SOURCE_MODE_UEFI)
system.secure_boot.set_enabled(True)
check("secure boot before the restart", system.secure_boot.current_boot, sushy.SecureBootCurrentBoot.DISABLED)
power(sushy.RESET_FORCE_RESTART, sushy.POWER_STATE_ON)
system.secure_boot.refresh()
check("secure boot after the restart", system.secure_boot.current_boot, sushy.SecureBootCurrentBoot.ENABLED)
system.set_indicator_led(sushy.INDICATOR_LED_BLINKING)
system.refresh()
check("indicator LED", system.indicator_led, sushy.INDICATOR_LED_BLINKING)
stale = system._get_etag()
system.set_indicator_led(sushy.INDICATOR_LED_OFF)
refused("a stale ETag", sushy.exceptions.HTTPError,
        lambda: system._conn._op("PATCH", path, data={"IndicatorLED": "Lit"}, headers={"If-Match": stale}))

# Inventory
check("processors", (system.processors.summary.count, system.processors.summary.architecture), (16, sushy.PROCESSOR_ARCH_x86))
check("memory", system.memory_summary.size_gib, 64)
check("cards", list(system.ethernet_interfaces.summary.values()), [sushy.STATE_ENABLED])
check("drives", system.storage.drives_sizes_bytes, [480 * 10**9] * 2)
check("chassis", [c.identity for c in system.chassis], [system.identity])

# Virtual media
manager = system.managers[0]
media = [manager.virtual_media]
if hasattr(system, "virtual_media"):  # sushy 4.4 and newer
    media.append(system.virtual_media)
drives = [[d for d in m.get_members() if sushy.VIRTUAL_MEDIA_CD in d.media_types][0] for m in media]
drive = drives[-1]
drive.insert_media("http://127.0.0.1/a.iso")
drive.refresh()
drives[0].refresh()
check("medium below the manager", drives[0].image, "http://127.0.0.1/a.iso")
check("medium", (drive.inserted, drive.image), (True, "http://127.0.0.1/a.iso"))
refused("a second medium", sushy.exceptions.HTTPError, lambda: drive.insert_media("http://127.0.0.1/b.iso"))
drive.eject_media()
drive.refresh()
check("medium after eject", (drive.inserted, drive.image), (False, None))

# BIOS
registry = {a.name: a for a in system.bios.get_attribute_registry().registry_entries.attributes}
check("attribute", (registry["ProcTurboMode"].attribute_type, registry["BoardRevision"].read_only), ("Enumeration", True))
refused("a wrong value", sushy.exceptions.BadRequestError, lambda: system.bios.set_attribute("ProcTurboMode", "Perhaps"))
refused("an unknown setting", sushy.exceptions.BadRequestError, lambda: system.bios.set_attribute("Nonsense", "1"))
bios = system.bios
bios.set_attributes({"ProcTurboMode": "Disabled", "QuietBootDelay": 7})
check("setting before the restart", system.bios.attributes["ProcTurboMode"], "Enabled")
check("pending settings", system.bios.pending_attributes, {"ProcTurboMode": "Disabled", "QuietBootDelay": 7})
power(sushy.RESET_FORCE_RESTART, sushy.POWER_STATE_ON)
system.bios.refresh()
check("setting after the restart", system.bios.attributes["ProcTurboMode"], "Disabled")
check("status of the change", system.bios.update_status.status, settings.UPDATE_SUCCESS)
system.bios.reset_bios()
power(sushy.RESET_FORCE_RESTART, sushy.POWER_STATE_ON)
system.bios.refresh()
check("setting after the reset", system.bios.attributes["ProcTurboMode"], "Enabled")

# Volumes
volumes = system.storage.get_members()[0].volumes
drives = [{"@odata.id": d.path} for d in system.storage.get_members()[0].drives]
made = volumes.create({"RAIDType": "RAID1", "Links": {"Drives": drives}}, apply_time=sushy.ApplyTime.IMMEDIATE)
check("volume", (made.raid_type, made.capacity_bytes), (sushy.RAIDType.RAID1, 480 * 10**9))
refused("a volume without drives", sushy.exceptions.BadRequestError, lambda: volumes.create({"RAIDType": "RAID0"}))
monitor = made.delete(apply_time=sushy.ApplyTime.ON_RESET)
check("task before the restart", monitor.check_is_processing, True)
power(sushy.RESET_FORCE_RESTART, sushy.POWER_STATE_ON)
check("task after the restart", monitor.check_is_processing, False)
volumes.refresh()
check("volumes", len(volumes.get_members()), 0)

# Firmware
service = bmc.get_update_service()
check("components", sorted(c.name for c in service.firmware_inventory.get_members()), ["BIOS", "BMC", "NIC.1"])
target = [c.path for c in service.firmware_inventory.get_members() if c.name == "BIOS"]
monitor = service.simple_update("http://127.0.0.1/bios-2.10.bin", targets=target)
until("the update", lambda: not monitor.check_is_processing)
check("task", monitor.get_task().task_state, sushy.TASK_STATE_COMPLETED)
power(sushy.RESET_FORCE_RESTART, sushy.POWER_STATE_ON)
system.refresh()
check("BIOS version", system.bios_version, "2.10")
monitor = service.simple_update("http://127.0.0.1/bmc-3.0.bin")
until("the update of the BMC", lambda: not monitor.check_is_processing)
manager.refresh()
check("BMC version", manager.firmware_version, "3.0")
power(sushy.RESET_FORCE_OFF, sushy.POWER_STATE_OFF)
print("sushy agrees")
