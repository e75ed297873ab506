"""Which programs have connected, when, and what they did: the live tick of each card."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QObject, Signal, Slot

from dflash_desktop.server.events import ClientSeen, RequestArrived, RequestEnded, RequestRefused, ServerStopped
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.server.serving import SELF_TEST_CLIENT

translate = QCoreApplication.translate
_LISTINGS = ("/models", "/tags", "/ps", "/version", "/system")


@dataclass(slots=True)
class Tick:
    """What one program has done since the window opened."""

    last_at_s: float = 0.0
    has_listed: bool = False
    n_running: int = 0
    n_answered: int = 0
    n_failed: int = 0
    last_failure: str = ""

    @property
    def is_good(self) -> bool:
        return self.last_at_s > 0 and not self.last_failure

    def words(self, now_s: float) -> str:
        """'connected 3 s ago: model listed, 1 reply'; empty before the first sign of it."""
        if not self.last_at_s:
            return ""
        done = []
        if self.has_listed:
            done.append(translate("ticks", "model listed"))
        if self.n_answered == 1:
            done.append(translate("ticks", "1 reply"))
        elif self.n_answered:
            done.append(translate("ticks", "{0} replies").format(numbers.count(self.n_answered)))
        if self.n_running:
            done.append(translate("ticks", "{0} running").format(numbers.count(self.n_running)))
        if self.n_failed:
            done.append(translate("ticks", "{0} failed").format(numbers.count(self.n_failed)))
        age = numbers.age(now_s - self.last_at_s)
        if not done:
            return translate("ticks", "connected {0}").format(age)
        return translate("ticks", "connected {0}: {1}").format(age, ", ".join(done))


class ClientTicks(QObject):
    """Follows the server's events. Clients are known by the ids of their cards."""

    changed = Signal(object)  # the client's id

    def __init__(self) -> None:
        super().__init__()
        self._ticks: dict[str, Tick] = {}
        self._clients: dict[str, str] = {}  # request id -> client, while it runs
        self._ended: deque[str] = deque(maxlen=64)  # a reply that failed is told of again as a refused request

    def tick(self, client_id: str) -> Tick:
        return self._ticks.get(client_id) or Tick()

    @property
    def connected(self) -> list[str]:
        return list(self._ticks)

    @Slot(object)
    def on_server_event(self, event: object) -> None:
        match event:
            case ClientSeen() if event.client != SELF_TEST_CLIENT:
                tick = self._touch(event.client, event.at_s)
                tick.has_listed |= event.path.endswith(_LISTINGS)
                self.changed.emit(event.client)
            case RequestArrived() if event.client != SELF_TEST_CLIENT:
                self._clients[event.request_id] = event.client
                self._touch(event.client, event.at_s).n_running += 1
                self.changed.emit(event.client)
            case RequestEnded():
                self._ended.append(event.request_id)
                client = self._clients.pop(event.request_id, None)
                if client is not None:
                    self._end(self._touch(client, time.time()), event)
                    self.changed.emit(client)
            case RequestRefused() if event.client != SELF_TEST_CLIENT and event.request_id not in self._ended:
                tick = self._touch(event.client, event.at_s)
                tick.n_failed += 1
                tick.last_failure = event.message
                self.changed.emit(event.client)
            case ServerStopped():
                self._clients.clear()
                for client, tick in self._ticks.items():
                    if tick.n_running:
                        tick.n_running = 0
                        self.changed.emit(client)
            case _:
                pass

    def _touch(self, client: str, at_s: float) -> Tick:
        tick = self._ticks.setdefault(client, Tick())
        tick.last_at_s = max(tick.last_at_s, at_s)
        return tick

    @staticmethod
    def _end(tick: Tick, ended: RequestEnded) -> None:
        tick.n_running = max(0, tick.n_running - 1)
        if ended.outcome in ("failed", "refused"):
            tick.n_failed += 1
            tick.last_failure = ended.message
        elif ended.outcome != "cancelled":
            tick.n_answered += 1
            tick.last_failure = ""
