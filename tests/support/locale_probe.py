"""A program: makes a Qt application if asked, then a reply at temperature 0.7, and prints what it saw as JSON."""

from __future__ import annotations

import ctypes
import json
import locale
import sys
import threading
from pathlib import Path
from typing import Any

from dflash_desktop.binding.native import Library, NativeFile
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import Event, GenerationDone, JobFailed, PairLoaded
from dflash_desktop.engine.loaded import PairLoader
from dflash_desktop.engine.prompt import PromptReader
from dflash_desktop.engine.requests import ChatPrompt, DraftOptions, Generate, LoadOptions, LoadPair, Sampling
from dflash_desktop.engine.template import ChatTemplate


def read_number() -> float:
    strtod = ctypes.CDLL(None).strtod
    strtod.restype = ctypes.c_double
    strtod.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    number: float = strtod(b"0.7", None)
    return number


def main(target: Path, draft: Path, *, window: bool) -> dict[str, Any]:
    application = None
    if window:
        from PySide6.QtCore import QCoreApplication

        application = QCoreApplication([])
        locale.setlocale(locale.LC_ALL, "")  # as a program of another toolkit would, too
    library = Library()
    engine = Engine(PairLoader(library))
    seen: dict[str, Any] = {"main thread reads 0.7 as": read_number()}
    prompt = ChatPrompt([{"role": "user", "content": "Say 0.5 and 1,5."}], tools=[{"temperature": 0.7, "n": 1e-7}])

    ended = threading.Event()

    def listen(event: Event) -> None:
        match event:
            case PairLoaded():
                seen["lane reads 0.7 as"] = read_number()
            case GenerationDone():
                seen.update(token_ids=event.token_ids, text=event.text)
                ended.set()
            case JobFailed():
                seen["failed"] = event.message
                ended.set()
            case _:
                pass

    engine.submit(LoadPair(target, draft, LoadOptions(context_tokens=256, n_threads=1), listen))
    sampling = Sampling(temperature=0.7, top_p=0.95, min_p=0.05, seed=11, repeat_penalty=1.1)
    engine.submit(Generate(prompt, listen, sampling=sampling, draft=DraftOptions("chain"), max_tokens=24))
    template = ChatTemplate("{{ strftime_now('%B') | length > 0 }} {{ 0.7 }} {{ tools | tojson }}")
    engine.start()
    ended.wait(100)
    engine.close()
    with NativeFile(library, target) as file:
        seen["prompt"] = PromptReader(file, target.name).render(prompt).text
        seen["freq_base"] = file.value("qwen35.rope.freq_base")
    seen["date"] = str.__str__(template.render({"tools": [{"a": 0.7}]}))
    del application
    return seen


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), window=sys.argv[3] == "window")))
