"""A headless Chromium for tests, spoken to by the WebDriver protocol."""

import base64
import json
import os
import urllib.request
from pathlib import Path
from typing import Any

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    *("--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


class Browser:
    """A headless Chromium, spoken to by the WebDriver protocol."""

    def __init__(self, address: str, binary: str, profile: Path) -> None:
        # Whatever proxy there is, it is not for this machine itself.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._session = address
        flags = [*FLAGS, f"--user-data-dir={profile}"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        wanted = {
            "goog:chromeOptions": {"binary": binary, "args": flags},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        made = self._post("/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"{address}/session/{made['sessionId']}"

    def open(self, path: Path | str, *, width: int, dark: bool = False, media: str = "") -> None:
        """Open a page, a file or an address, at a width in CSS pixels."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", media=media, features=[scheme])
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        self._post("/url", {"url": path if isinstance(path, str) else path.as_uri()})

    def run(self, script: str) -> Any:
        """Return what a script returns."""
        return self._post("/execute/sync", {"script": script, "args": []})

    def command(self, name: str, **parameters: Any) -> Any:
        """Give a command of the DevTools protocol."""
        return self._post("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def errors(self) -> list[str]:
        """Return what the console has said since the last call."""
        return [entry["message"] for entry in self._post("/se/log", {"type": "browser"})]

    def requests(self) -> list[str]:
        """Return the addresses that were asked since the last call."""
        entries = self._post("/se/log", {"type": "performance"})
        told = [json.loads(entry["message"])["message"] for entry in entries]
        return [
            one["params"]["request"]["url"]
            for one in told
            if one["method"] == "Network.requestWillBeSent"
        ]

    def save_screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        picture = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(picture["data"]))

    def close(self) -> None:
        """End the browser."""
        request = urllib.request.Request(self._session, method="DELETE")
        self._opener.open(request, timeout=60).close()

    def _post(self, path: str, content: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            self._session + path,
            data=json.dumps(content).encode(),
            headers={"Content-Type": "application/json"},
        )
        with self._opener.open(request, timeout=60) as answer:
            return json.load(answer)["value"]
