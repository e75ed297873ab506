"""How a second start reaches the open window: it passes its files, the window comes up, the second start ends."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject, Signal, Slot
from PySide6.QtNetwork import QLocalServer, QLocalSocket

log = logging.getLogger(__name__)

ANSWER_S = 10.0
"""How long a second start waits for the first one, which may be on its way up itself."""
_MOST_BYTES = 1 << 16
_ANSWER = b"ok\n"
_TOKENS = ("XDG_ACTIVATION_TOKEN", "DESKTOP_STARTUP_ID")


class InstanceChannel(QObject):
    """Lives in the GUI thread of the program that holds the lock. Only this person's programs can connect."""

    called = Signal(object)  # tuple of Path: the files to open, none when only the window is wanted

    def __init__(self, name: str) -> None:
        super().__init__()
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self.on_connection)
        self._read: dict[QLocalSocket, bytes] = {}
        place = _address(name)
        if place is None:
            log.warning("no safe folder for the channel: a second start will not reach this window")
            return
        QLocalServer.removeServer(place)  # left behind by a killed program: we hold the lock, so nobody listens
        if not self._server.listen(place):
            log.warning("a second start will not reach this window: %s", self._server.errorString())

    def close(self) -> None:
        """Nobody is heard any more."""
        self._server.close()

    @Slot()
    def on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            self._read[socket] = b""
            socket.readyRead.connect(self.on_ready)
            socket.disconnected.connect(self.on_gone)

    @Slot()
    def on_ready(self) -> None:
        socket = self.sender()
        if not isinstance(socket, QLocalSocket) or socket not in self._read:
            return
        self._read[socket] += bytes(socket.readAll().data())
        if len(self._read[socket]) > _MOST_BYTES:
            socket.abort()
            return
        if not self._read[socket].endswith(b"\n"):
            return
        files = _understood(self._read[socket])
        self._read[socket] = b""
        if files is None:
            socket.abort()
            return
        socket.write(_ANSWER)
        socket.flush()
        self.called.emit(files)

    @Slot()
    def on_gone(self) -> None:
        socket = self.sender()
        if isinstance(socket, QLocalSocket):
            self._read.pop(socket, None)
            socket.deleteLater()


def call_first(name: str, files: Sequence[Path], *, answer_s: float = ANSWER_S) -> bool:
    """Ask the open window to come up with `files`; False when nobody answers in `answer_s`."""
    application = QCoreApplication.instance() or QCoreApplication(sys.argv[:1])
    place = _address(name)
    if place is None:
        return False
    token = next((os.environ[variable] for variable in _TOKENS if os.environ.get(variable)), "")
    message = {"files": [os.fspath(file.absolute()) for file in files], "token": token}
    if sys.platform == "win32":
        import ctypes

        ctypes.windll.user32.AllowSetForegroundWindow(-1)  # the first program may take the foreground from us
    deadline = time.monotonic() + answer_s
    while time.monotonic() < deadline:
        if _ask(place, json.dumps(message).encode("ascii") + b"\n", deadline):
            return True
        time.sleep(0.05)
    del application  # until here the sockets needed it
    return False


def _ask(place: str, message: bytes, deadline: float) -> bool:
    socket = QLocalSocket()
    socket.connectToServer(place)
    if not socket.waitForConnected(1000):
        return False
    socket.write(message)
    answer = b""
    while not answer.endswith(_ANSWER):
        left_ms = int((deadline - time.monotonic()) * 1000)
        if left_ms <= 0 or not socket.waitForReadyRead(left_ms):
            return False
        answer += bytes(socket.readAll().data())
    socket.disconnectFromServer()
    return True


def _understood(message: bytes) -> tuple[Path, ...] | None:
    """The files of a call; None for anything else. Lets the window come up where the system wants a token for that."""
    try:
        asked = json.loads(message)
        files = tuple(Path(file) for file in asked["files"])
        token = str(asked.get("token", ""))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        log.warning("a call to this window was not understood")
        return None
    if token:
        os.environ["XDG_ACTIVATION_TOKEN"] = token  # Qt takes it from there when the window is activated
    return files


def _address(name: str) -> str | None:
    """A name that only this person can listen on; None where there is no such place."""
    if sys.platform == "win32":
        return name  # a named pipe, with an access list of this person's
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(runtime) if runtime and _is_private(Path(runtime)) else None
    if folder is None:
        folder = Path(tempfile.gettempdir()) / f"dflash-desktop-{os.getuid()}"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            return None
        if not _is_private(folder):  # somebody else made it, to listen there
            return None
    return str(folder / name)


def _is_private(folder: Path) -> bool:
    if sys.platform == "win32":
        return True
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
