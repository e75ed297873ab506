"""What the server does now, as its socket tells: the state that page, rail and cards show."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum

from PySide6.QtCore import QObject, Signal, Slot

from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.engine.requests import LoadPair, UnloadPair
from dflash_desktop.server.events import (
    RequestArrived,
    RequestEnded,
    ServerFailed,
    ServerStarted,
    ServerStopped,
)
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.self_test import SelfTestLine
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.engine.pair_state import PairState, Phase
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.server.bridge import ServerBridge
from dflash_desktop.ui.server.key_file import KeyFile

STANDARD_PORT = 1234
SELF_TEST_CLIENT = "self_test"
_ORIGIN = re.compile(r"(?:null|[a-z][a-z0-9+.\-]*://[a-z0-9.\-\[\]:]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """What the person chose about the server; kept between starts, without the key."""

    port: int = STANDARD_PORT
    is_lan: bool = False
    asks_key: bool = False  # on this computer too; a server for the network always asks
    allowed_origins: str = ""  # as typed
    has_any_origin: bool = False
    can_clients_load: bool = True  # another model of this computer, or a larger context
    shortens: bool = False  # PFlash on Auto for requests that say nothing about it
    is_on: bool = False  # it ran when the window was closed
    has_seen_hint: bool = False  # the chat has said that other programs can use the model

    def origins(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.rstrip("/") for each in re.split(r"[\s,;]+", self.allowed_origins) if each))

    def bad_origin(self) -> str:
        """The first entry that no browser could send; empty when all are fine."""
        return next((each for each in self.origins() if not _ORIGIN.fullmatch(each)), "")


class ServePhase(Enum):
    OFF = "off"
    STARTING = "starting"
    NO_MODEL = "no model"  # listens, and tells clients that nothing is loaded
    TESTING = "testing"
    SERVING = "serving"  # listens, and every dialect was tried out
    TEST_FAILED = "test failed"  # listens, but a check failed
    STOPPING = "stopping"
    FAILED = "failed"  # does not listen


LISTENING = frozenset({ServePhase.NO_MODEL, ServePhase.TESTING, ServePhase.SERVING, ServePhase.TEST_FAILED})
BUSY = frozenset({ServePhase.STARTING, ServePhase.STOPPING})


class Serving(QObject):
    """Asks for start and stop, and believes only the events."""

    changed = Signal()  # phase, settings, checks, model, or how many programs wait
    told = Signal(object)  # a sentence about something that happened by itself

    def __init__(
        self,
        bridge: ServerBridge,
        engine_bridge: EngineBridge,
        pair_state: PairState,
        keys: KeyFile,
        settings: ServeSettings,
    ) -> None:
        super().__init__()
        self._bridge = bridge
        self._engine_bridge = engine_bridge
        self._pair_state = pair_state
        self._keys = keys
        self._in_force: ServeSettings | None = None
        self._pflash_in_force = PflashOptions()
        self._tested_pair: object = None
        self._running: dict[str, str] = {}  # request id -> client
        self._will_restart = False
        port_is_sound = 1 <= settings.port <= 65535
        self.settings = settings if port_is_sound else replace(settings, port=STANDARD_PORT)
        self.phase = ServePhase.OFF
        self.port = 0  # of the open socket
        self.is_lan = False  # of the open socket
        self.addresses: tuple[str, ...] = ()
        self.checks: list[SelfTestLine] = []
        self.failure: ServerFailed | None = None
        bridge.server_event.connect(self.on_server_event)
        bridge.self_tested.connect(self.on_self_tested)
        bridge.self_test_ended.connect(self.on_self_test_ended)
        engine_bridge.load_adopted.connect(self.on_load_adopted)
        pair_state.changed.connect(self.on_pair_changed)
        self.on_pair_changed()

    # ---- what the person asks for

    @property
    def is_listening(self) -> bool:
        return self.phase in LISTENING

    @property
    def n_running(self) -> int:
        """Replies that clients wait for, waiting or running."""
        return len(self._running)

    @property
    def has_pending_settings(self) -> bool:
        """The open socket was made with other settings than those shown."""
        return self.is_listening and self._in_force != self.settings

    @property
    def access_token(self) -> str:
        """What clients must send; empty where no key is asked for."""
        return self._keys.key() if self.settings.is_lan or self.settings.asks_key else ""

    def key(self) -> str:
        return self._keys.key()

    def renew_key(self) -> None:
        """Another key; the old one stops working when the server has started again, which is when nobody waits."""
        self._keys.renew()
        self._in_force = None
        self._apply()

    def choose(self, settings: ServeSettings) -> None:
        """Take new settings. The server starts again with them as soon as no program waits for a reply."""
        if settings != self.settings:
            self.settings = settings
            self._use_pflash()
            if self.has_pending_settings:
                self._apply()
            else:
                self.changed.emit()

    def start(self) -> None:
        if self.is_listening or self.phase in BUSY:
            return
        self._open()

    def stop(self) -> None:
        if self.is_listening:
            self._will_restart = False
            self._close()

    def restart(self) -> None:
        """Close and open again with the settings shown; what runs is cancelled."""
        if self.is_listening:
            self._will_restart = True
            self._close()
        else:
            self.start()

    def test_again(self) -> None:
        if self.phase in (ServePhase.TEST_FAILED, ServePhase.SERVING):
            self._test()

    def remembered(self) -> ServeSettings:
        """For the next start."""
        return replace(self.settings, is_on=self.is_listening or self.phase is ServePhase.STARTING)

    def _apply(self) -> None:
        if self.is_listening and not self._running:
            self.restart()
        else:
            self.changed.emit()

    def _open(self) -> None:
        settings = self.settings
        self._in_force = settings
        self._pflash_in_force = self._pflash_options()
        self.failure = None
        self.phase = ServePhase.STARTING
        self._bridge.start(
            ServerOptions(
                port=settings.port,
                is_lan=settings.is_lan,
                access_token=self.access_token,
                allowed_origins=tuple(each for each in settings.origins() if _ORIGIN.fullmatch(each)),
                has_any_origin=settings.has_any_origin,
                can_clients_reload=settings.can_clients_load,
                loads_on_demand=settings.can_clients_load,
                pflash=self._pflash_in_force,
            )
        )
        self.changed.emit()

    def _pflash_options(self) -> PflashOptions:
        """What leaves text out is not switched on for other programs unseen: its switch here is one of its own."""
        options = self._pair_state.pflash.options(self._pair_state.built_in_scorer)
        return replace(options, mode="auto" if self.settings.shortens else "off")

    def _use_pflash(self) -> None:
        """In force at once: the sockets stay open."""
        if self._in_force is None:
            return
        self._in_force = replace(self._in_force, shortens=self.settings.shortens)
        options = self._pflash_options()
        if options != self._pflash_in_force:
            self._pflash_in_force = options
            self._bridge.use_pflash(options)

    def _close(self) -> None:
        self.phase = ServePhase.STOPPING
        self.checks = []
        self._bridge.stop()
        self.changed.emit()

    # ---- what happens

    @Slot(object)
    def on_server_event(self, event: object) -> None:
        match event:
            case ServerStarted():
                self.port, self.addresses, self.is_lan = event.port, event.addresses, event.is_lan
                self._tested_pair = None
                self._look_at_pair()
            case ServerFailed():
                self.failure = event
                self.phase = ServePhase.FAILED
                self.changed.emit()
            case ServerStopped():
                self._running.clear()
                self.port, self.addresses = 0, ()
                self.phase = ServePhase.OFF
                if self._will_restart:
                    self._will_restart = False
                    self._open()
                else:
                    self.changed.emit()
            case RequestArrived() if event.client != SELF_TEST_CLIENT:
                self._running[event.request_id] = event.client
                self.changed.emit()
            case RequestEnded() if event.request_id in self._running:
                del self._running[event.request_id]
                if self.has_pending_settings and not self._running:
                    self.restart()
                else:
                    self.changed.emit()
            case _:
                pass

    @Slot()
    def on_pair_changed(self) -> None:
        self._engine_bridge.served_draft = self._pair_state.draft_options()
        self._use_pflash()
        if self.is_listening:
            self._look_at_pair()

    @Slot(object, object)
    def on_load_adopted(self, _job_id: int, job: LoadPair | UnloadPair) -> None:
        if isinstance(job, UnloadPair):
            self.told.emit(self.tr("A program asked to unload the model."))
            return
        pair, n_tokens = self._pair_state.pair, job.options.context_tokens
        if pair is not None and pair.target == job.target and n_tokens:
            words = self.tr("A program asked for a context of {0}: the model is loaded again with it.")
            self.told.emit(words.format(numbers.tokens(n_tokens)))
        else:
            self.told.emit(self.tr("A program asked for {0}: it is being loaded.").format(job.target.stem))

    @Slot(object)
    def on_self_tested(self, line: SelfTestLine) -> None:
        if self.phase is ServePhase.TESTING:
            self.checks = [*self.checks, line]
            self.changed.emit()

    @Slot()
    def on_self_test_ended(self) -> None:
        if self.phase is ServePhase.TESTING:
            is_good = bool(self.checks) and all(line.passed for line in self.checks)
            self.phase = ServePhase.SERVING if is_good else ServePhase.TEST_FAILED
            self.changed.emit()

    def _look_at_pair(self) -> None:
        """Test once for each pair that is loaded while the socket is open."""
        pair = self._pair_state.pair if self._pair_state.phase is Phase.LOADED else None
        if pair is None:
            self._tested_pair = None
            self._bridge.stop_test()  # its next request would load the model again
            self.checks = []
            self.phase = ServePhase.NO_MODEL
        elif pair is not self._tested_pair:
            self._tested_pair = pair
            self._test()
            return
        self.changed.emit()

    def _test(self) -> None:
        self.phase = ServePhase.TESTING
        self.checks = []
        self._bridge.self_test()
        self.changed.emit()
