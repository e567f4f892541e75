"""Headless Chromium over a pipe: pages opened without any network, keys pressed, pictures taken, errors collected."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--window-size=1200,900",
    "--remote-debugging-pipe",
)
KEYS = {"Tab": 9, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39, "Enter": 13}
PATIENCE = 60.0
"""Seconds after which a page that does not answer is an error; a loaded machine is slow."""


class Chromium:
    """One browser with one page."""

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        theirs_in, self._out = _above(os.pipe())
        self._in, theirs_out = _above(os.pipe())

        def hand_over() -> None:
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        self._process = subprocess.Popen(
            [PROGRAM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,  # the pipe is handed over as descriptors 3 and 4
            preexec_fn=hand_over,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = next(t for t in self._call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, path: Path) -> None:
        """Load a page and wait until it is drawn."""
        self.events.clear()
        self._call("Page.navigate", url=path.as_uri())
        self.until("document.readyState === 'complete'")

    def run(self, code: str) -> Any:
        """The value of a JavaScript expression in the page; of a promise, what it comes to."""
        answer = self._call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, code: str) -> None:
        """Wait until a JavaScript expression is true."""
        self._wait(lambda: bool(self.run(code)), code)

    def settle(self) -> None:
        """Wait until what was asked for is on the screen."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def press(self, key: str) -> None:
        """Press and release a key."""
        named = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        self._call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **named, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", **named)

    def move(self, x: float, y: float) -> None:
        """Move the mouse to a point of the window."""
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, path: Path) -> Path:
        """A PNG of the window."""
        self.settle()
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))
        return path

    def printed(self, path: Path) -> Path:
        """A PDF of the page as it prints."""
        pdf = self._call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]
        path.write_bytes(base64.b64decode(pdf))
        return path

    def complaints(self) -> list[str]:
        """Errors and warnings of the page: exceptions, console, content security policy, what failed to load."""
        self.run("1")
        found = []
        for event in self.events:
            what = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(what["exceptionDetails"])[:500])
            if event["method"] == "Runtime.consoleAPICalled" and what["type"] in (
                "error",
                "warning",
                "assert",
            ):
                found.append(json.dumps(what["args"])[:500])
            if event["method"] == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
                found.append(what["entry"]["text"])
        return found

    def asked_for(self) -> list[str]:
        """Addresses that the page asked for, without those that lie in the page itself."""
        self.run("1")
        sent = (
            e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"
        )
        return [url for url in sent if not url.startswith(("data:", "blob:"))]

    def close(self) -> None:
        """End the browser."""
        try:
            self._session = ""
            self._call("Browser.close")
        except (AssertionError, OSError):
            self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(20)
        os.close(self._out)
        os.close(self._in)

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        left = json.dumps(message).encode() + b"\0"
        while left:
            left = left[os.write(self._out, left) :]
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            if "method" in answer:
                self.events.append(answer)

    def _read(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            left = deadline - time.monotonic()
            assert left > 0, "the browser does not answer"
            if select.select([self._in], [], [], min(left, 1.0))[0]:
                more = os.read(self._in, 1 << 16)
                assert more, "the browser has ended"
                self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline, f"waited in vain for: {what}"
            time.sleep(0.02)


def _above(ends: tuple[int, int]) -> tuple[int, int]:
    """Both ends of a pipe under numbers that the browser's own cannot take."""
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]
