"""Proves that a frozen program works: run it on the machine that built it, and on one that has no Python packages.

    python smoke.py PROGRAM [--display]

Starts it in an empty home: devices, an answer with the built-in pair and its draft, one HTTP request, then the window,
which loads the target that a second start hands to it and closes when asked. The window is drawn offscreen; --display
uses the screen there is. Needs Python 3.9 and nothing else. Exit code 0 when all of it worked.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIMIT_S = 180
_NOT_PASSED_ON = ("PYTHON", "XDG_DATA", "XDG_CONFIG", "XDG_CACHE", "XDG_STATE", "QT_PLUGIN", "VIRTUAL_ENV")


class Smoke:
    """One program, one home."""

    def __init__(self, program: Path, home: Path, on_display: bool) -> None:
        self.program = str(program.absolute())
        self.home = home
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_PASSED_ON)}
        self.environment.update(HOME=str(home), LOCALAPPDATA=str(home), APPDATA=str(home), LC_ALL="C.UTF-8")
        if not on_display:
            self.environment["QT_QPA_PLATFORM"] = "offscreen"

    def run(self, *arguments: str) -> str:
        """What it prints; it must succeed."""
        done = subprocess.run(
            [self.program, *arguments],
            env=self.environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        if done.returncode != 0:
            fail(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr.decode('utf-8', 'replace')}")
        return done.stdout.decode("utf-8")

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """The program while it runs; in the end it is asked to end, and must do that with 0."""
        process = subprocess.Popen(
            [self.program, *arguments],
            env=self.environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process
            stop(process)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def log_text(self) -> str:
        """All that it logged."""
        return "\n".join(file.read_text("utf-8", "replace") for file in self.home.rglob("dflash-desktop.log"))


def fail(words: str) -> None:
    sys.exit(f"smoke: {words}")


def say(words: str, since: float) -> None:
    print(f"smoke: {words} ({time.monotonic() - since:.2f} s)", flush=True)


def check_terminal(smoke: Smoke) -> None:
    """Devices, and an answer with the built-in pair."""
    since = time.monotonic()
    say(smoke.run("--version").strip(), since)
    since = time.monotonic()
    devices = json.loads(smoke.run("--list-devices", "--json"))
    if not any(device["backend"] == "CPU" for device in devices):
        fail(f"no CPU among the devices: {devices}")
    say("devices: " + ", ".join(f"{device['name']} ({device['description']})" for device in devices), since)
    since = time.monotonic()
    reply = json.loads(
        smoke.run("chat", "--prompt", "Say hello.", "--max-tokens", "12", "--draft-mode", "chain", "--json")
    )
    if not reply["text"].strip() or reply["committed"] < 1 or reply["drafted"] < 1:
        fail(f"no answer with a draft: {reply}")
    say(f"answer: {reply['text']!r}, {reply['drafted']} tokens drafted", since)


def check_server(smoke: Smoke) -> None:
    """One request over HTTP."""
    since = time.monotonic()
    with smoke.running("serve", "--port", "0") as process:
        address = wait_for_address(process)
        body = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, "model": "any"}
        request = urllib.request.Request(
            f"{address}/v1/chat/completions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            reply = json.load(answer)
        say(f"served: {reply['choices'][0]['message']['content']!r}", since)


def wait_for_address(process: subprocess.Popen[bytes]) -> str:
    """The first address that the server names."""
    assert process.stdout is not None
    seen = b""
    for line in process.stdout:
        seen += line
        found = re.search(rb"http://127\.0\.0\.1:\d+", line)
        if found:
            return found.group().decode()
    fail(f"the server named no address: {seen.decode('utf-8', 'replace')}")
    return ""


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, as the system does; it must end with 0."""
    if os.name == "nt":
        process.terminate()  # Windows has no polite way for a program without a window
        process.wait(timeout=30)
        return
    process.send_signal(signal.SIGTERM)
    try:
        code = process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        fail("it does not end when it is asked to")
    if code != 0:
        rest = process.stdout.read().decode("utf-8", "replace") if process.stdout else ""
        fail(f"it ended with {code}: {rest}")


def check_window(smoke: Smoke) -> None:
    """The window comes up, a second start hands it the built-in target, it loads that, and closes."""
    since = time.monotonic()
    models = Path(smoke.program).resolve().parent / "_internal" / "dflash_desktop" / "resources" / "models"
    target = next(file for file in models.glob("*.gguf") if "dflash" not in file.name)
    with smoke.running() as process:
        wait_for(smoke, process, r"window is up after ([0-9.]+) s", "the window does not come up")
        up_s = re.findall(r"window is up after ([0-9.]+) s", smoke.log_text())[-1]
        say(f"window: up {up_s} s after the start of the process", since)
        since = time.monotonic()
        smoke.run(str(target))  # returns at once: the first window has the file now
        if process.poll() is not None:
            fail("the first window is gone after the second start")
        say("second start: over, the first window has its file", since)
        since = time.monotonic()
        wait_for(smoke, process, rf"loaded: .*{re.escape(target.name)}", "the window does not load the file")
        say("window: loaded the file", since)


def wait_for(smoke: Smoke, process: subprocess.Popen[bytes], pattern: str, problem: str) -> None:
    """Until the log has a line like this."""
    deadline = time.monotonic() + LIMIT_S
    while not re.search(pattern, smoke.log_text()):
        if time.monotonic() > deadline or process.poll() is not None:
            fail(f"{problem}. Its log:\n{smoke.log_text()}")
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--display", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dflash-smoke-", ignore_cleanup_errors=True) as home:
        smoke = Smoke(arguments.program, Path(home), arguments.display)
        check_terminal(smoke)
        check_server(smoke)
        check_window(smoke)
    print("smoke: all of it works")


if __name__ == "__main__":
    main()
