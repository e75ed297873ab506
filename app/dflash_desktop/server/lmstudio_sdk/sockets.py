"""The sockets of LM Studio's SDK: which paths they have, who is admitted, how many may be open."""

from __future__ import annotations

from dataclasses import replace

from dflash_desktop.server.access import Caller as HttpCaller
from dflash_desktop.server.access import Gate
from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.front import Receive, Scope, Send
from dflash_desktop.server.lmstudio_sdk.caller import Caller
from dflash_desktop.server.lmstudio_sdk.calls import subjects
from dflash_desktop.server.lmstudio_sdk.packets import Authentication
from dflash_desktop.server.lmstudio_sdk.session import Session


class SdkSockets:
    """An ASGI application. Host and origin were checked before; the key comes with the first packet, or as a header."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._limits = conductor.options.limits
        self._gate = Gate(conductor.options)
        self._subjects = subjects(conductor)
        self._open: set[Session] = set()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(f"/{name}" for name in self._subjects)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._make_room()
        peer = scope["client"][0] if scope.get("client") else ""
        agents = (value for name, value in scope["headers"] if name.lower() == b"user-agent")
        caller = Caller(scope["path"], peer, next(agents, b"").decode("latin-1")[:200])
        subject = self._subjects[scope["path"].strip("/")]
        session = Session(subject, caller, receive, send, self._limits, self._tell_refusal)
        shown = HttpCaller.read(scope["headers"], peer)

        def admit(packet: Authentication, caller: Caller) -> Caller:
            return self._admit(replace(shown, keys=(*shown.keys, *packet.keys)), caller)

        self._open.add(session)
        try:
            await session.serve(admit)
        finally:
            self._open.discard(session)

    def _admit(self, shown: HttpCaller, caller: Caller) -> Caller:
        """The rules of HTTP: with the key everything, and without it listings to programs of this computer."""
        try:
            self._gate.check_key(shown, method="POST", path=caller.path)
        except ApiError:
            self._gate.check_key(shown, method="GET", path="/api/v1/models")
            return replace(caller, may_only_list=True)
        return caller

    def _tell_refusal(self, caller: Caller, error: ApiError) -> None:
        self._conductor.inspector.refused(caller.meta(), error.status, error.message)

    async def _make_room(self) -> None:
        """SDKs leave sockets open that they no longer use."""
        if len(self._open) < self._limits.n_sockets:
            return
        idle = [session for session in self._open if session.is_idle]
        if not idle:
            raise ApiError(
                f"{self._limits.n_sockets} sockets are open and at work. Close one of them.",
                status=503,
                kind="server_error",
                code="overloaded",
                retry_after_s=5,
            )
        longest = min(idle, key=lambda session: session.active_s)
        self._open.discard(longest)
        await longest.close_idle()
