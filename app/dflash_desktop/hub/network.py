"""How the hub is reached: official or mirror, proxy, access token, time limits. One HTTP client for the whole room."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import msgspec

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.json_file import put_aside, read_json, write_json
from dflash_desktop.hub.abort import trace_for_this_thread
from dflash_desktop.hub.failures import disk_problem, problem_of
from dflash_desktop.hub.problems import HubProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import httpx2
    from huggingface_hub import HfApi

log = logging.getLogger(__name__)
OFFICIAL = "https://huggingface.co"
ProxyMode = Literal["system", "none", "manual"]


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """What the person chose. The access token is kept elsewhere (access_token.py)."""

    mirror: str = ""  # URL of a mirror; "" for the official hub
    proxy: ProxyMode = "system"  # what the environment and the desktop say, none at all, or `proxy_url`
    proxy_url: str = ""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds. Short ones keep an unreachable hub from holding anybody up."""

    connect_s: float = 10.0
    silence_s: float = 10.0  # connected, but no byte comes


def read_network_settings(file: Path, environ: Mapping[str, str]) -> NetworkSettings:
    """What is kept in `file`; before anything is, the mirror that HF_ENDPOINT names."""
    try:
        kept = read_json(file)
        if kept is not None:
            return msgspec.convert({name: kept[name] for name in kept if name != "version"}, NetworkSettings)
    except msgspec.ValidationError as error:
        log.warning("network settings begin anew: %s", put_aside(file, str(error)))
    except AppError as error:
        log.warning("network settings begin anew: %s", error)
    mirror = environ.get("HF_ENDPOINT", "").rstrip("/")
    return NetworkSettings(mirror=mirror if mirror != OFFICIAL and _is_address(mirror, "http", "https") else "")


def write_network_settings(file: Path, settings: NetworkSettings) -> None:
    """Raises HubProblem when the disk refuses."""
    try:
        write_json(file, {"version": 1, **asdict(settings)})
    except OSError as error:
        raise disk_problem(error, file.parent) from error


class Network:
    """Built once; `use` may be called at any time. Nothing goes out before somebody asks for something."""

    def __init__(
        self,
        settings: NetworkSettings = NetworkSettings(),
        *,
        access_token: Callable[[], str | None] = lambda: None,
        official: str = OFFICIAL,
        limits: TimeLimits = TimeLimits(),
    ) -> None:
        """`official` is the only host that ever sees the access token."""
        self._access_token = access_token
        self._official = official
        self.limits = limits
        self.settings = settings
        self._is_client_set = False

    @property
    def endpoint(self) -> str:
        """Where questions go."""
        return self.settings.mirror.rstrip("/") or self._official

    @property
    def host(self) -> str:
        return urlsplit(self.endpoint).netloc

    @property
    def is_official(self) -> bool:
        return _origin(self.endpoint) == _origin(self._official)

    def use(self, settings: NetworkSettings) -> None:
        """Later requests follow `settings`, and running downloads go on that way. Raises HubProblem for no address."""
        if settings.mirror and not _is_address(settings.mirror, "http", "https"):
            raise HubProblem("unreachable", "not an address", where=settings.mirror)
        if settings.proxy == "manual" and not _is_address(settings.proxy_url, "http", "https"):
            raise HubProblem("proxy", "not an address", where=settings.proxy_url)
        self.settings = settings
        self._is_client_set = False

    def token(self) -> str | None:
        """The access token, if it may be sent where questions go now: to the official hub only."""
        return self._access_token() if self.is_official else None

    def session(self) -> httpx2.Client:
        """huggingface_hub's own client, set up our way: its calls and ours go the same way."""
        from huggingface_hub import get_session, set_client_factory

        if not self._is_client_set:
            set_client_factory(self._make_client)
            self._is_client_set = True
        return get_session()

    def api(self) -> HfApi:
        """The hub's API at the endpoint in force. `token=False`: a token goes along only where a call says so."""
        from huggingface_hub import HfApi

        self.session()
        return HfApi(endpoint=self.endpoint, token=False, library_name="dflash-desktop")

    def try_out(self) -> None:
        """One small question. Raises HubProblem when the hub is not there, or something else answers in its place."""
        try:
            response = self.session().get(f"{self.endpoint}/api/models?limit=1")
            response.raise_for_status()
            if not isinstance(response.json(), list):
                raise HubProblem("not_a_hub", where=self.host)
        except Exception as error:
            raise problem_of(error, self.host) from error

    def _make_client(self) -> httpx2.Client:
        import httpx2

        from dflash_desktop.hub.client import HubClient

        settings = self.settings
        proxy = settings.proxy_url if settings.proxy == "manual" and settings.proxy_url else None
        return HubClient(
            proxy=proxy,
            trust_env=settings.proxy == "system",
            follow_redirects=True,
            event_hooks={"request": [self._prepare]},
            timeout=self._timeout(),
            # No idle connections: after a machine slept they are dead without saying so.
            limits=httpx2.Limits(max_keepalive_connections=0),
        )

    def _timeout(self) -> httpx2.Timeout:
        import httpx2

        return httpx2.Timeout(self.limits.silence_s, connect=self.limits.connect_s)

    def _prepare(self, request: httpx2.Request) -> None:
        # Some calls of huggingface_hub switch every time limit off (timeout=None).
        if not any((request.extensions.get("timeout") or {}).values()):
            request.extensions = {**request.extensions, "timeout": self._timeout().as_dict()}
        trace = trace_for_this_thread()
        if trace is not None:
            request.extensions = {**request.extensions, "trace": trace}


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").casefold(), parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _is_address(url: str, *schemes: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
