"""A very long answer, streamed fast: the event loop keeps turning, at the end as at the beginning (B129)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import QObject, QTimer

from dflash_desktop.ui.chats.blocks import MAX_PROSE_CHARS, Block, Kind
from dflash_desktop.ui.chats.documents import BlockDocument
from support.patience import in_time
from ui.conftest import Desk
from ui.scripted_engine import Script

PROSE = "The **sky** is blue because `light` is scattered by the air, more so at short wavelengths. "
CODE = "```python\nfor n in range(100):  # count\n    print(f'{n} is a number', n * 2)\n```\n\n"
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n"


class Gaps(QObject):
    """What each turn of the event loop took, measured by a timer that wants to run all the time.

    In processor time of this thread: what other programs do on the same cores is not the window's fault.
    """

    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []
        self._last = time.thread_time()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._note)
        self._timer.start(0)

    def _note(self) -> None:
        now = time.thread_time()
        self.values.append(now - self._last)
        self._last = now

    def take(self) -> list[float]:
        taken, self.values = self.values, []
        return taken

    def stop(self) -> None:
        self._timer.stop()


class Work:
    """How much text is laid out at a time, which is what a turn of the event loop takes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.prose: list[int] = []  # characters, in each update of a block
        self.code: list[int] = []
        update = BlockDocument.update

        def noted(document: BlockDocument, block: Block, *, is_open: bool) -> None:
            if block.kind is Kind.CODE:
                self.code.append(len(block.text.removeprefix(document._shown)))
            else:
                self.prose.append(len(block.text))
            update(document, block, is_open=is_open)

        patch.setattr(BlockDocument, "update", noted)


@in_time(0.1)
@pytest.mark.parametrize(
    "text",
    [(PROSE * 4 + "\n\n" + CODE + TABLE) * 100, PROSE * 700, "```js\n" + "let x = f(1, 'two');\n" * 3000],
    ids=["mixed", "one paragraph", "one code block"],
)
def test_twenty_thousand_tokens_leave_the_event_loop_alive(
    make_desk: Callable[..., Desk], text: str, monkeypatch: pytest.MonkeyPatch, within_s: float
) -> None:
    work = Work(monkeypatch)
    desk = make_desk(Script(text=text, step_s=0.0005, has_trees=False))
    desk.load()
    gaps = Gaps()
    desk.send("go")
    n_chars = len(text)
    desk.qtbot.waitUntil(lambda: len(desk.items.message(1).text) > n_chars * 0.15)
    early = gaps.take()
    desk.qtbot.waitUntil(lambda: len(desk.items.message(1).text) > n_chars * 0.80)
    gaps.take()
    desk.qtbot.waitUntil(lambda: not desk.chat.is_busy)
    late = gaps.take()
    gaps.stop()
    assert desk.items.message(1).text == text
    assert max(work.prose, default=0) <= 3 * MAX_PROSE_CHARS
    assert sum(work.code) < 2 * len(text)
    assert max(late) < within_s
    assert high(late) < max(0.16 * within_s, 2 * high(early))


def high(values: list[float]) -> float:
    """The 99th percentile."""
    return sorted(values)[int(len(values) * 0.99)]
