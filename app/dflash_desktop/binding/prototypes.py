"""The functions of native/include/dflash.h in ctypes, line by line: what each takes and gives back."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_float, c_int32, c_uint32
from typing import Any

from dflash_desktop.binding.abi import (
    Begun,
    Device,
    DraftHandle,
    Failure,
    FileHandle,
    FileInfo,
    Generation,
    LoadParams,
    LogLine,
    Memory,
    Plan,
    Prefixes,
    Progress,
    ScorerHandle,
    ScorerParams,
    SessionHandle,
    SessionParams,
    Step,
    TargetHandle,
    Value,
)

_INTS = POINTER(c_int32)
_FLOATS = POINTER(c_float)
_DOUBLES = POINTER(c_double)
_LOAD = POINTER(LoadParams)

# name -> (result, arguments), in the header's order
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "dflash_abi_version": (c_int32, ()),
    "dflash_struct_size": (c_uint32, (c_char_p,)),
    "dflash_last_error": (c_char_p, ()),
    "dflash_last_failure": (c_int32, (POINTER(Failure),)),
    "dflash_ggml_version": (c_char_p, ()),
    "dflash_start": (c_int32, (c_char_p,)),
    "dflash_log_next": (c_int32, (POINTER(LogLine),)),
    "dflash_log_aborts_to": (c_int32, (c_char_p,)),
    "dflash_device_count": (c_int32, (_INTS,)),
    "dflash_device_get": (c_int32, (c_int32, POINTER(Device))),
    "dflash_file_open": (c_int32, (c_char_p, POINTER(FileHandle))),
    "dflash_file_close": (None, (FileHandle,)),
    "dflash_file_describe": (c_int32, (FileHandle, POINTER(FileInfo))),
    "dflash_file_value": (c_int32, (FileHandle, c_char_p, POINTER(Value))),
    "dflash_file_pair": (c_int32, (FileHandle, FileHandle)),
    "dflash_target_open": (c_int32, (c_char_p, _LOAD, POINTER(TargetHandle))),
    "dflash_target_load": (c_int32, (TargetHandle, POINTER(Progress))),
    "dflash_target_close": (None, (TargetHandle,)),
    "dflash_target_stop_tokens": (c_int32, (TargetHandle, c_int32, _INTS, _INTS)),
    "dflash_draft_open": (c_int32, (c_char_p, TargetHandle, _LOAD, POINTER(DraftHandle))),
    "dflash_draft_load": (c_int32, (DraftHandle, POINTER(Progress))),
    "dflash_draft_close": (None, (DraftHandle,)),
    "dflash_session_open": (c_int32, (TargetHandle, DraftHandle, POINTER(SessionParams), POINTER(SessionHandle))),
    "dflash_session_close": (None, (SessionHandle,)),
    "dflash_session_memory": (c_int32, (SessionHandle, POINTER(Memory))),
    "dflash_session_prefixes": (c_int32, (SessionHandle, POINTER(Prefixes))),
    "dflash_session_tuning": (c_int32, (SessionHandle, c_int32, _DOUBLES, _INTS)),
    "dflash_plan_pair": (c_int32, (c_char_p, c_char_p, _LOAD, _LOAD, POINTER(SessionParams), POINTER(Plan))),
    "dflash_session_begin": (c_int32, (SessionHandle, _INTS, c_int32, POINTER(Generation), POINTER(Begun))),
    "dflash_session_prefill": (c_int32, (SessionHandle, POINTER(Progress))),
    "dflash_session_step": (c_int32, (SessionHandle, POINTER(Step))),
    "dflash_session_propose": (c_int32, (SessionHandle, POINTER(Step))),
    "dflash_session_likeliest": (c_int32, (SessionHandle, c_int32, c_int32, _INTS, _FLOATS)),
    "dflash_session_settle": (c_int32, (SessionHandle, c_int32, POINTER(c_uint32), c_int32, POINTER(Step))),
    "dflash_session_cancel": (None, (SessionHandle,)),
    # scoring
    "dflash_scorer_open": (c_int32, (TargetHandle, POINTER(ScorerParams), POINTER(ScorerHandle))),
    "dflash_scorer_close": (None, (ScorerHandle,)),
    "dflash_scorer_memory": (c_int32, (ScorerHandle, POINTER(Memory))),
    "dflash_plan_scorer": (c_int32, (c_char_p, POINTER(LoadParams), POINTER(ScorerParams), POINTER(Memory))),
    "dflash_scorer_begin": (c_int32, (ScorerHandle, _INTS, c_int32, _INTS, c_int32, _FLOATS)),
    "dflash_scorer_run": (c_int32, (ScorerHandle, POINTER(Progress))),
    "dflash_scorer_masses": (c_int32, (ScorerHandle, _FLOATS, c_int32)),
    "dflash_scorer_cancel": (None, (ScorerHandle,)),
    # probes
    "dflash_probe_reset": (c_int32, (SessionHandle,)),
    "dflash_probe_append": (c_int32, (SessionHandle, _INTS, c_int32, _FLOATS)),
    "dflash_probe_draft": (c_int32, (SessionHandle, c_int32, c_int32, c_int32, _INTS, _FLOATS, _FLOATS)),
    "dflash_probe_verify": (c_int32, (SessionHandle, _INTS, _INTS, c_int32, _FLOATS)),
    "dflash_probe_commit": (c_int32, (SessionHandle, _INTS, c_int32)),
    "dflash_probe_sample": (c_int32, (_FLOATS, c_int32, _INTS, c_int32, POINTER(Generation), c_int32, _INTS)),
}


def declare(library: ctypes.CDLL) -> None:
    """Give each exported function its types. Raises AttributeError, naming the function, when one is missing."""
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
