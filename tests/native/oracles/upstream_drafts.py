"""What upstream's server drafts, read from its own log at the highest verbosity. A child process runs the server."""

from __future__ import annotations

import http.client
import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import gguf
import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt


@dataclass(frozen=True)
class UpstreamDraft:
    """One block: the tokens before its root, the root, and what upstream drafted after it."""

    n_before: int
    root: int
    tokens: list[int]  # the likeliest candidate of each position that the log shows
    n_offered: int  # how many of them went to the target


@dataclass(frozen=True)
class UpstreamReply:
    tokens: list[int]
    drafts: list[UpstreamDraft]


def add_tokenizer(
    target: Path, destination: Path, keys: Mapping[str, object], tensors: Mapping[str, npt.NDArray[np.generic]]
) -> Path:
    """A `dflash` draft with the target's tokenizer in it: upstream loads no other."""
    from support.drafts import add_keys

    writer = gguf.GGUFWriter(destination, "dflash")
    add_keys(writer, keys)
    for field in gguf.GGUFReader(target).fields.values():
        if field.name.startswith("tokenizer.") and field.name not in keys:
            is_array = field.types[0] == gguf.GGUFValueType.ARRAY
            writer.add_key_value(
                field.name, field.contents(), field.types[0], sub_type=field.types[-1] if is_array else None
            )
    for name, data in tensors.items():
        writer.add_tensor(name, np.ascontiguousarray(data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return destination


_LINE = re.compile(
    r"draft candidate\s+0, pos\s+(?P<position>\d+):\s+(?P<token>\d+) \("
    r"|generate_draft: id=(?P<root>\d+), #tokens=(?P<before>\d+), #draft=(?P<offered>\d+)"
)


def reply(
    target: Path, draft: Path, kind: str, prompt: Sequence[int], n_tokens: int, *, n_max: int, p_min: float = 0
) -> UpstreamReply:
    """A greedy reply, and every block drafted on the way. `kind` is DFLASH or DSPARK."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("needs the package xllamacpp (the extra `test`)")
    request = {
        "target": str(target),
        "draft": str(draft),
        "kind": kind,
        "prompt": list(prompt),
        "n_tokens": n_tokens,
        "n_max": n_max,
        "p_min": p_min,
    }
    run = subprocess.run(
        [sys.executable, __file__], input=json.dumps(request).encode(), capture_output=True, check=False
    )
    text = (run.stdout + b"\n" + run.stderr).decode("utf-8", "replace")
    answer = re.search(r"^answer: (.*)$", text, re.MULTILINE)
    assert answer, text[-2000:]
    drafts: list[UpstreamDraft] = []
    tokens: list[int] = []
    for found in _LINE.finditer(run.stderr.decode("utf-8", "replace")):
        if found["token"]:
            tokens = [] if found["position"] == "0" else tokens
            tokens.append(int(found["token"]))
        else:
            drafts.append(UpstreamDraft(int(found["before"]), int(found["root"]), tokens, int(found["offered"])))
            tokens = []
    return UpstreamReply(json.loads(answer[1]), drafts)


def _main() -> None:
    import xllamacpp

    request = json.load(sys.stdin)
    params = xllamacpp.CommonParams()
    params.model.path = request["target"]
    params.n_ctx, params.n_parallel, params.warmup, params.port, params.verbosity = 256, 1, False, 0, 5
    params.cpuparams.n_threads = 2
    kinds = xllamacpp.common_speculative_type
    params.speculative.types = [getattr(kinds, f"COMMON_SPECULATIVE_TYPE_DRAFT_{request['kind']}")]
    params.speculative.draft.mparams.path = request["draft"]
    params.speculative.draft.n_max = request["n_max"]
    params.speculative.draft.p_min = request["p_min"]
    server = xllamacpp.Server(params)
    address = urlsplit(server.listening_address)
    connection = http.client.HTTPConnection(str(address.hostname), address.port)
    body = {
        "prompt": request["prompt"],
        "n_predict": request["n_tokens"],
        "temperature": 0,
        "return_tokens": True,
        "ignore_eos": True,
    }
    connection.request("POST", "/completion", json.dumps(body), {"Content-Type": "application/json"})
    print("\nanswer: " + json.dumps(json.loads(connection.getresponse().read())["tokens"]), flush=True)


if __name__ == "__main__":
    _main()
