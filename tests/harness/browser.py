"""A headless Chromium, driven through its DevTools protocol, with what its pages said."""

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_OPTIONS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-port=0", "--remote-allow-origins=*", "--window-size=1400,900",
]  # fmt: skip


class Browser:
    """One page of a browser: `async with Browser() as page`; `errors` is what its console said."""

    async def __aenter__(self):
        self.folder = tempfile.mkdtemp(prefix="chromium-")
        command = [CHROMIUM, *_OPTIONS, f"--user-data-dir={self.folder}", "about:blank"]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
        port = Path(self.folder) / "DevToolsActivePort"
        await until(lambda: port.exists() and port.read_text().strip(), 60)
        number = port.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{number}/json") as found:
            pages = [page for page in json.load(found) if page["type"] == "page"]
        from tornado.websocket import websocket_connect

        self.socket = await websocket_connect(
            pages[0]["webSocketDebuggerUrl"], max_message_size=1 << 28
        )
        self.answers, self.errors, self.number = {}, [], 0
        self.reading = asyncio.ensure_future(self._read())
        for domain in ("Page", "Runtime", "Log"):
            await self.send(f"{domain}.enable")
        return self

    async def __aexit__(self, *_):
        self.reading.cancel()
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _read(self):
        while (text := await self.socket.read_message()) is not None:
            message = json.loads(text)
            method, params = message.get("method"), message.get("params", {})
            if "id" in message:
                self.answers[message["id"]].set_result(message)
            elif method == "Runtime.exceptionThrown":
                self.errors.append(params["exceptionDetails"])
            elif method == "Runtime.consoleAPICalled" and params["type"] == "error":
                self.errors.append(params["args"])
            elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
                self.errors.append(params["entry"])

    async def send(self, method, **params):
        self.number += 1
        answer = self.answers[self.number] = asyncio.get_running_loop().create_future()
        await self.socket.write_message(
            json.dumps({"id": self.number, "method": method, "params": params})
        )
        message = await asyncio.wait_for(answer, 120)
        assert "error" not in message, message
        return message["result"]

    async def open(self, address, ready="document.readyState === 'complete'", seconds=120):
        await self.send("Page.navigate", url=address)
        await self.wait(ready, seconds)

    async def run(self, script):
        """The value of an expression of JavaScript, of a promise once it is kept."""
        found = await self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def wait(self, condition, seconds=120):
        return await until(lambda: self.run(condition), seconds)

    async def press(self, key):
        code = {"key": key, "text": key} if len(key) == 1 else {"key": key}
        for kind in ("keyDown", "keyUp"):
            await self.send("Input.dispatchKeyEvent", type=kind, **code)

    async def hover(self, selector):
        box = f"JSON.stringify(document.querySelector('{selector}').getBoundingClientRect())"
        place = json.loads(await self.run(box))
        x, y = place["x"] + 5, place["y"] + place["height"] / 2
        await self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    async def screenshot(self, path):
        found = await self.send("Page.captureScreenshot", format="png")
        Path(path).write_bytes(base64.b64decode(found["data"]))


async def until(condition, seconds):
    """Wait until a function, or a coroutine function, gives something true, and return that."""
    for _ in range(int(seconds * 10)):
        found = condition()
        found = await found if asyncio.iscoroutine(found) else found
        if found:
            return found
        await asyncio.sleep(0.1)
    raise TimeoutError(f"after {seconds} s")
