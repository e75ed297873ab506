"""The constants, enums and structs of native/include/dflash.h in ctypes, line by line; prototypes.py has its functions.

The header is the manual; tests/binding compares the two.
"""

from __future__ import annotations

import ctypes
import re
from ctypes import POINTER, Structure, c_char, c_double, c_float, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from enum import IntEnum
from typing import Annotated, Any, TypeVar, get_type_hints

ABI_VERSION = 5
MAX_ROWS = 64

S = TypeVar("S", bound=Structure)

# What Python sees, and what C holds.
I32 = Annotated[int, c_int32]
U32 = Annotated[int, c_uint32]
I64 = Annotated[int, c_int64]
U64 = Annotated[int, c_uint64]
F32 = Annotated[float, c_float]
F64 = Annotated[float, c_double]
Pointer = Annotated[int | None, c_void_p]
Ints = Annotated[ctypes.Array[c_int32], c_int32 * MAX_ROWS]
Floats = Annotated[ctypes.Array[c_float], c_float * MAX_ROWS]
Doubles = Annotated[Any, POINTER(c_double)]


STRUCTS: dict[str, type[Structure]] = {}
"""All that are declared here, by their names in the header."""


def c_struct(cls: type[S]) -> type[S]:
    """Lay the struct out in memory as its annotations say; FileInfo is dflash_file_info."""
    hints = get_type_hints(cls, include_extras=True)
    cls._fields_ = [(name, hints[name].__metadata__[0]) for name in cls.__annotations__]
    STRUCTS["dflash" + re.sub("([A-Z])", r"_\1", cls.__name__).lower()] = cls
    return cls


class Status(IntEnum):
    OK = 0
    END = 1
    MORE = 2
    BAD_ARGUMENT = -1
    BAD_FILE = -2
    UNSUPPORTED = -3
    OUT_OF_MEMORY = -4
    DEVICE_FAILED = -5
    CANCELLED = -6
    BAD_STATE = -7
    INTERNAL = -8


class Part(IntEnum):
    UNKNOWN = 0
    WEIGHTS = 1
    KV_CACHE = 2
    COMPUTE = 3
    DRAFT = 4
    SCORER = 5


@c_struct
class Failure(Structure):
    size: U32
    status: I32
    device: I32
    part: I32
    needed_bytes: U64
    free_bytes: U64


# ---- start, devices, log --------------------------------------------------------------------------------------


class LogLevel(IntEnum):
    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


@c_struct
class LogLine(Structure):
    size: U32
    level: I32
    text: Annotated[bytes, c_char * 1016]


class DeviceKind(IntEnum):
    CPU = 0
    GPU = 1
    INTEGRATED_GPU = 2
    OTHER = 3


@c_struct
class Device(Structure):
    size: U32
    index: I32
    kind: I32
    reserved: I32
    total_bytes: U64
    free_bytes: U64
    name: Annotated[bytes, c_char * 64]
    backend: Annotated[bytes, c_char * 64]
    description: Annotated[bytes, c_char * 256]
    id: Annotated[bytes, c_char * 128]


# ---- model files ----------------------------------------------------------------------------------------------


class FileHandle(c_void_p):
    """dflash_file *"""


class Role(IntEnum):
    OTHER = 0
    TARGET = 1
    DRAFT = 2


@c_struct
class FileInfo(Structure):
    size: U32
    role: I32
    can_run: I32
    n_layers: I32
    n_embd: I32
    n_vocab: I32
    context_tokens: I32
    block_size: I32
    mask_token: I32
    n_feature_layers: I32
    feature_layers: Annotated[ctypes.Array[c_int32], c_int32 * 32]
    file_bytes: U64
    n_parameters: U64
    architecture: Annotated[bytes, c_char * 64]
    name: Annotated[bytes, c_char * 256]
    quantization: Annotated[bytes, c_char * 64]
    reason: Annotated[bytes, c_char * 512]


class ValueKind(IntEnum):
    INTEGER = 1
    REAL = 2
    BOOLEAN = 3
    STRING = 4
    INTEGERS = 5
    REALS = 6
    BOOLEANS = 7
    STRINGS = 8


@c_struct
class Value(Structure):
    size: U32
    kind: I32
    integer: I64
    real: F64
    count: U64
    data: Pointer
    n_bytes: U64
    element_bytes: I32
    is_signed: I32


# ---- loading --------------------------------------------------------------------------------------------------


class TargetHandle(c_void_p):
    """dflash_target *"""


class DraftHandle(c_void_p):
    """dflash_draft *"""


@c_struct
class LoadParams(Structure):
    size: U32
    device: I32
    n_threads: I32
    is_apart: I32


@c_struct
class Progress(Structure):
    size: U32
    reserved: I32
    n_done: U64
    n_total: U64


# ---- sessions -------------------------------------------------------------------------------------------------


class SessionHandle(c_void_p):
    """dflash_session *"""


class ScorerHandle(c_void_p):
    """dflash_scorer *"""


class KvTypeCode(IntEnum):
    AUTO = 0
    F32 = 1
    F16 = 2
    BF16 = 3
    Q8_0 = 4
    Q5_1 = 5
    Q5_0 = 6
    Q4_1 = 7
    Q4_0 = 8


@c_struct
class SessionParams(Structure):
    size: U32
    context_tokens: I32
    kv_k: I32
    kv_v: I32
    prefill_chunk: I32
    max_nodes: I32
    window: I32
    n_tuning: I32
    tuning: Doubles
    prefix_bytes: I64


@c_struct
class Memory(Structure):
    size: U32
    context_tokens: I32
    target_weights_bytes: U64
    draft_weights_bytes: U64
    kv_cache_bytes: U64
    recurrent_bytes: U64
    draft_kv_bytes: U64
    compute_bytes: U64
    draft_compute_bytes: U64
    prefix_bytes: U64


@c_struct
class Prefixes(Structure):
    size: U32
    reserved: U32
    most_bytes: U64
    used_bytes: U64
    fresh_bytes: U64
    n_restores: U64
    n_restored_tokens: U64
    n_saved_tokens: U64
    n_evicted_tokens: U64
    save_us: I64
    restore_us: I64


class DraftModeCode(IntEnum):
    AUTO = 0
    TREE = 1
    CHAIN = 2
    OFF = 3


@c_struct
class Plan(Structure):
    size: U32
    context_tokens: I32
    max_context_tokens: I32
    fits: I32
    target_weights_bytes: U64
    draft_weights_bytes: U64
    kv_cache_bytes: U64
    recurrent_bytes: U64
    draft_kv_bytes: U64
    compute_bytes: U64
    total_bytes: U64
    reserve_bytes: U64
    free_bytes: U64
    draft_compute_bytes: U64
    draft_total_bytes: U64
    draft_reserve_bytes: U64
    draft_free_bytes: U64


@c_struct
class ScorerParams(Structure):
    size: U32
    text_tokens: I32
    window_tokens: I32
    first_layer: I32
    end_layer: I32
    windows_together: I32


@c_struct
class Generation(Structure):
    size: U32
    max_tokens: I32
    temperature: F32
    top_p: F32
    min_p: F32
    top_k: I32
    repeat_penalty: F32
    frequency_penalty: F32
    presence_penalty: F32
    penalty_window: I32
    seed: U64
    draft_mode: I32
    tree_budget: I32
    block_size: I32
    ignore_stop: I32
    want_logprobs: I32
    no_reuse: I32


@c_struct
class Begun(Structure):
    size: U32
    n_prompt: I32
    n_reused: I32
    max_tokens: I32
    n_restored: I32
    reserved: I32
    reuse_us: I64


class Finish(IntEnum):
    NONE = 0
    STOP = 1
    LENGTH = 2
    CONTEXT = 3


class Reason(IntEnum):
    NO_DRAFT = 0
    OFF = 1
    FIXED = 2
    BEST = 3
    PLAIN_FASTER = 4
    PROBE = 5
    NO_ROOM = 6
    MEASURE = 7


@c_struct
class Step(Structure):
    size: U32
    n_drafted: I32
    n_accepted: I32
    n_committed: I32
    finish: I32
    reason: I32
    n_positions: I32
    n_reply: I32
    draft_us: I64
    verify_us: I64
    commit_us: I64
    host_us: I64
    block_size: I32
    expected_committed: F32
    expected_us: F32
    plain_us: F32
    speed_up: F32
    tokens: Ints
    logprobs: Floats
    node_tokens: Ints
    node_parents: Ints
    node_logprobs: Floats
    path: Ints


ENUMS: dict[str, type[IntEnum]] = {
    "dflash_status": Status,
    "dflash_part": Part,
    "dflash_log_level": LogLevel,
    "dflash_device_kind": DeviceKind,
    "dflash_role": Role,
    "dflash_value_kind": ValueKind,
    "dflash_kv_type": KvTypeCode,
    "dflash_draft_mode": DraftModeCode,
    "dflash_finish": Finish,
    "dflash_reason": Reason,
}
