"""What the person can choose about the server, as plain values; the settings page and `serve` fill them in."""

from __future__ import annotations

from dataclasses import dataclass, field

from dflash_desktop.engine.pflash.options import PflashOptions

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that keep one caller from hurting the machine."""

    body_bytes: int = 64 * MIB
    all_bodies_bytes: int = 256 * MIB  # of all requests being read at the same time
    head_bytes: int = 64 * 1024
    head_s: float = 20.0  # from the first byte of a request head to its end
    body_gap_s: float = 30.0  # longest silence while a body arrives
    body_s: float = 600.0  # from the first byte of a body to its end
    send_gap_s: float = 60.0  # a reader that takes nothing for this long is gone
    keep_alive_s: int = 30
    n_connections: int = 256
    n_waiting: int = 8  # requests waiting for the lane
    beat_s: float = 5.0  # heartbeat period
    first_beat_s: float = 1.0
    packet_bytes: int = 8 * MIB  # one packet of LM Studio's SDK
    n_sockets: int = 32  # of the SDK, open at a time; the longest idle one gives way
    n_calls: int = 32  # calls and channels open at a time on one of them
    ping_s: float = 20.0  # a socket whose client answers no ping for so long is closed


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """One running server. Changing any of these means a restart of the server, never of the engine."""

    port: int = 1234  # 0: any free port
    is_lan: bool = False  # listen on every network address; forces a key
    access_token: str = ""  # the API key; empty: none
    needs_key_here: bool = False  # ask this computer's own programs for the key when they only list models
    allowed_origins: tuple[str, ...] = ()
    has_any_origin: bool = False  # Access-Control for every web page; the page warns before it is chosen
    allowed_hosts: tuple[str, ...] = ()
    is_lm_studio: bool = True  # answer /lmstudio-greeting
    has_any_model_name: bool = True  # every model name means the loaded model
    can_clients_reload: bool = True  # programs of this computer may load another context, another model, or unload
    can_lan_clients_load: bool = False  # and so may those of the network
    loads_on_demand: bool = True  # a request that names another model of this computer loads it, where its sender may
    idle_unload_s: float = 0.0  # unload after so many seconds without a request; 0: never
    puts_thoughts_in_content: bool = False  # <think> tags for clients that know only tags
    max_reply_tokens: int = 0  # most tokens of any reply, whatever is asked; 0: what the context holds
    default_temperature: float | None = None  # None: the model card's, else 0
    pflash: PflashOptions = PflashOptions()  # for requests that say nothing about it
    limits: Limits = field(default_factory=Limits)
