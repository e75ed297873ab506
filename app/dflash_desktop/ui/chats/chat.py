"""One conversation with the engine: sends, streams, stops, and keeps the item model true."""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from dflash_desktop.engine.events import (
    GenerationDone,
    JobCancelled,
    JobFailed,
    JobQueued,
    PairInfo,
    PrefillProgress,
    PromptReady,
    StepDone,
    StepReason,
)
from dflash_desktop.engine.requests import ChatPrompt, RawPrompt, Sampling
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.chats.chat_item_model import ChatItemModel
from dflash_desktop.ui.chats.messages import Message, ReplyState, facts_of, prompt_messages
from dflash_desktop.ui.engine.pair_state import PairState, Phase
from dflash_desktop.ui.kit.pace import STREAM_MS

REFUSALS = ("bad_request", "context_exceeded", "no_pair")


@dataclass(frozen=True, slots=True)
class ReplySettings:
    """How replies are asked for."""

    system_prompt: str = ""
    temperature: float = 0.3
    top_p: float = 0.95
    top_k: int = 40
    seed: int = -1  # -1: another one for each reply
    max_tokens: int = 0  # 0: the room left in the context


@dataclass(slots=True)
class _Running:
    """The reply that is being made."""

    row: int
    job_id: int | None  # None while the pair loads
    seed: int = 0
    model_name: str = ""
    texts: list[str] = field(default_factory=list)  # arrived, not yet shown
    prefill: PrefillProgress | None = None  # arrived, not yet shown
    reasons: Counter[StepReason] = field(default_factory=Counter)
    is_stopped: bool = False


class Chat(QObject):
    """Lives in the GUI thread. Text goes into the model at STREAM_MS, however fast the engine is."""

    busy_changed = Signal()
    refused = Signal(object, object)  # text of the person's message, the engine's sentence
    failed = Signal(object)  # JobFailed

    def __init__(self, bridge: EngineBridge, pair_state: PairState) -> None:
        super().__init__()
        self._bridge = bridge
        self._pair_state = pair_state
        self._running: _Running | None = None
        self._cleared: list[Message] = []
        self.items = ChatItemModel(self)
        self.settings = ReplySettings()
        self._timer = QTimer(self)
        self._timer.setInterval(STREAM_MS)
        self._timer.timeout.connect(self._flush)
        bridge.engine_event.connect(self.on_engine_event)
        pair_state.changed.connect(self.on_pair_changed)

    @property
    def is_busy(self) -> bool:
        return self._running is not None and not self._running.is_stopped

    @property
    def can_regenerate(self) -> bool:
        n_rows = self.items.rowCount()
        return not self.is_busy and n_rows > 0 and self.items.message(n_rows - 1).role == "assistant"

    def can_send(self) -> bool:
        """Whether a message can be taken now: something is loaded or loading, and no reply is running."""
        return not self.is_busy and self._pair_state.phase in (Phase.LOADED, Phase.LOADING)

    def send(self, text: str) -> bool:
        """Take a message, or return False and leave it with the caller."""
        if not text.strip() or not self.can_send():
            return False
        self.items.append(Message("user", text))
        self._ask()
        return True

    def stop(self) -> None:
        """End the reply now: what has come is kept, what still comes is not shown."""
        running = self._running
        if running is None or running.is_stopped:
            return
        self._flush()
        running.is_stopped = True
        self.items.finish(running.row, ReplyState.STOPPED, None)
        if running.job_id is None:
            self._running = None
        else:
            self._bridge.cancel(running.job_id)
        self._timer.stop()
        self.busy_changed.emit()

    def regenerate(self) -> None:
        """Replace the last reply by another one."""
        if self.can_regenerate and self._pair_state.phase in (Phase.LOADED, Phase.LOADING):
            self.items.remove_from(self.items.rowCount() - 1)
            self._ask()

    def clear(self) -> None:
        """Begin a new chat. `undo_clear` brings the old one back until something is sent."""
        self.stop()
        self._running = None
        self._cleared = self.items.remove_from(0)
        self.busy_changed.emit()

    def undo_clear(self) -> None:
        if self.items.rowCount() == 0:
            for message in self._cleared:
                self.items.append(message)
        self._cleared = []

    def _ask(self) -> None:
        row = self.items.append(Message("assistant", "", ReplyState.WAITING))
        self._running = _Running(row, None)
        if self._pair_state.phase is Phase.LOADED and self._pair_state.pair is not None:
            self._submit(self._pair_state.pair)
        self.busy_changed.emit()

    def _submit(self, pair: PairInfo) -> None:
        running = self._running
        if running is None:
            return
        chosen = self.settings
        running.seed = chosen.seed if chosen.seed >= 0 else secrets.randbelow(2**31)
        running.model_name = self._pair_state.title()
        rows = prompt_messages(self.items.messages(), chosen.system_prompt)
        # A base model has no template: it continues the text as it stands.
        prompt = ChatPrompt(rows) if pair.can_template else RawPrompt("\n\n".join(str(r["content"]) for r in rows))
        self.items.set_state(running.row, ReplyState.QUEUED)
        self._timer.start()
        running.job_id = self._bridge.generate(
            prompt,
            sampling=Sampling(
                temperature=chosen.temperature, top_k=chosen.top_k, top_p=chosen.top_p, seed=running.seed
            ),
            draft=self._pair_state.draft_options(),
            max_tokens=chosen.max_tokens,
        )

    @Slot()
    def on_pair_changed(self) -> None:
        running = self._running
        if running is None:
            return
        if running.job_id is not None:
            if self._pair_state.phase in (Phase.LOADING, Phase.UNLOADING):
                self.stop()  # the lane does one thing after another: else the load would wait for this reply's end
            return
        if self._pair_state.phase is Phase.LOADING:
            return
        if self._pair_state.pair is not None:
            self._submit(self._pair_state.pair)
        else:  # the load that this message waited for was refused or cancelled
            self._give_back(self.tr("The model was not loaded, so the message was not sent."))

    @Slot(object)
    def on_engine_event(self, event: object) -> None:
        running = self._running
        if running is None or getattr(event, "job_id", None) != running.job_id:
            return
        match event:
            case GenerationDone():
                self._finish(running, event)
            case JobFailed():
                self._fail(running, event)
            case JobCancelled():
                self._end(running)
                self.items.finish(running.row, ReplyState.STOPPED, None)
            case _ if running.is_stopped:
                return
            case StepDone():
                running.reasons[event.reason] += 1
                running.texts.append(event.text)
            case PromptReady():
                n_new = event.n_prompt_tokens - event.n_reused_tokens
                running.prefill = PrefillProgress(event.job_id, 0, n_new, 0.0)
            case PrefillProgress():
                running.prefill = event
            case JobQueued():
                pass

    @Slot()
    def _flush(self) -> None:
        running = self._running
        if running is None:
            return
        if running.texts:
            text = "".join(running.texts)
            running.texts.clear()
            running.prefill = None
            if text:
                self.items.extend_reply(running.row, text)
        elif running.prefill is not None and not running.is_stopped:
            now, running.prefill = running.prefill, None
            self.items.set_prefill(running.row, now.n_done_tokens, now.n_total_tokens, now.elapsed_s)

    def _finish(self, running: _Running, done: GenerationDone) -> None:
        if not running.is_stopped:
            self._flush()
            if self.items.message(running.row).text != done.text:
                self.items.set_text(running.row, done.text)
        facts = facts_of(
            done,
            reason=next((reason for reason, _ in running.reasons.most_common(1)), None),
            seed=running.seed,
            model_name=running.model_name,
        )
        is_cut = running.is_stopped or done.finish_reason == "cancelled"
        self.items.finish(running.row, ReplyState.STOPPED if is_cut else ReplyState.DONE, facts)
        self._end(running)

    def _fail(self, running: _Running, failure: JobFailed) -> None:
        self._flush()
        has_text = bool(self.items.message(running.row).text or failure.text)
        if failure.kind in REFUSALS and not has_text:
            self._give_back(failure.message)
            return
        if len(failure.text) > len(self.items.message(running.row).text):
            self.items.set_text(running.row, failure.text)
        self.items.fail(running.row, failure.message)
        self._end(running)
        self.failed.emit(failure)

    def _give_back(self, why: str) -> None:
        """The message was not accepted: it leaves the chat and goes back to whoever wrote it."""
        running = self._running
        if running is None:
            return
        removed = self.items.remove_from(running.row - 1)
        self._end(running)
        self.refused.emit(removed[0].text, why)

    def _end(self, running: _Running) -> None:
        if self._running is running:
            self._running = None
            self._timer.stop()
            self.busy_changed.emit()
