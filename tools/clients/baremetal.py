"""Runs the commands of baremetal.txt with Debian's python3-ironicclient: baremetal.py URL COMMANDS ANSWERS [write]

Each command has to answer as the file ANSWERS has it, which "write" makes. What a command starts has ended before the next one."""

import contextlib
import io
import json
import logging
import re
import shlex
import sys
import time
import urllib.request

from ironicclient import shell

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
CLOCK = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?")
STEPS = re.compile(r"steps=\[[^\"]+\]")
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+|localhost:\d+|req-UUID")
# What only tells the ramdisk or the driver something, as in reference/fakes.md#where-the-fake-differs.
NOTES = re.compile(r"^(agent_.*|disk_erasure_concurrency|deploy_boot_mode|clean_steps|cleaning_disable_ramdisk)$")


def settle(url):
    """waits until Ironic works on no node and no allocation"""
    def ask(path):
        asks = urllib.request.Request(url + path, headers={"X-OpenStack-Ironic-API-Version": "1.78"})
        with urllib.request.urlopen(asks) as answer:
            return json.load(answer)
    for _ in range(600):
        nodes = ask("/v1/nodes?fields=reservation,target_power_state,provision_state")["nodes"]
        busy = any(n["reservation"] or n["target_power_state"] or n["provision_state"].endswith("ing") for n in nodes)
        if not busy and not ask("/v1/allocations?state=allocating")["allocations"]:
            return
        time.sleep(0.1)


def plain(value):
    """leaves out notes, and sorts what has no order"""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if not NOTES.match(k)}
    if isinstance(value, list):
        unordered = all(isinstance(item, str) or list(item) == ["Traits"] for item in value)
        return sorted(map(str, value)) if unordered else [plain(item) for item in value]
    return value


def run(url, command, known):
    """runs a command, and returns what it says"""
    words = shlex.split(command)
    if set(words) & {"create", "get", "list", "show", "validate"}:
        words += ["-f", "json"]
    logging.getLogger().handlers.clear()
    said, failed = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(failed):
        try:
            status = shell.main(["--os-auth-type", "none", "--os-endpoint", url, "--max-retries", "0", *words])
        except SystemExit as end:
            status = end.code
    text = said.getvalue()
    with contextlib.suppress(ValueError):
        text = json.dumps(plain(json.loads(text)), sort_keys=True)
    text = " ".join(f"{status} {text} {failed.getvalue()}".split())
    text = CLOCK.sub("TIME", UUID.sub(lambda id: id[0] if id[0] in known else "UUID", text))
    return STEPS.sub("steps=[...]", ADDRESS.sub("", text))


def main(url, commands, answers, write=""):
    with open(commands, encoding="utf-8") as file:
        commands = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    known, wanted = set(UUID.findall(" ".join(commands))), []
    if not write:
        with open(answers, encoding="utf-8") as file:
            wanted = file.read().split("\n")
    got = []
    for number, command in enumerate(commands):
        said = run(url, command, known)
        settle(url)
        got += [f"$ {command}", said]
        same = write or got[-2:] == wanted[2 * number:2 * number + 2]
        print(f"--- {'PASS' if same else 'FAIL'}: {number:03}_{'_'.join(command.split())}")
        if not same:
            print(f"  wants {(wanted[2 * number + 1:2 * number + 2] or [''])[0]}\n  gets  {said}")
    if write:
        with open(answers, "w", encoding="utf-8") as file:
            file.write("\n".join(got) + "\n")
    return 0


sys.exit(main(*sys.argv[1:]))
