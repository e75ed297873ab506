"""Replies in the making: asks the engine, streams what comes into the conversation, and into the store."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.events import (
    GenerationDone,
    JobCancelled,
    JobFailed,
    JobQueued,
    LoadProgress,
    PairInfo,
    PrefillProgress,
    PromptReady,
    StepDone,
)
from dflash_desktop.engine.loops import is_looping
from dflash_desktop.engine.pflash.options import PromptCompressed, ScoreProgress
from dflash_desktop.engine.prompt import content_text
from dflash_desktop.engine.requests import ChatPrompt, RawPrompt, Sampling
from dflash_desktop.server.parsing.reasoning import opens_thinking
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.chats.chat_item_model import ChatItemModel
from dflash_desktop.ui.chats.facts import AskedWith, facts_of
from dflash_desktop.ui.chats.keeper import ChatKeeper
from dflash_desktop.ui.chats.messages import Message, ReplyState
from dflash_desktop.ui.chats.prompting import Asked, asked_for
from dflash_desktop.ui.chats.reply_run import ReplyRun, ReplySplitter, TokenRuns
from dflash_desktop.ui.chats.shortening_facts import shortening_of
from dflash_desktop.ui.chats.talk import Talk
from dflash_desktop.ui.engine.pair_state import PairState, Phase
from dflash_desktop.ui.kit.cause_words import told
from dflash_desktop.ui.kit.pace import CHECKPOINT_MS, STREAM_MS

log = logging.getLogger(__name__)
REFUSALS = ("bad_request", "context_exceeded", "no_pair")
FIRST_SENT = "first_sent_id"
"""In a chat's settings: the first message that the model still reads; those before it were left out by choice."""


class Replies(QObject):
    """Lives in the GUI thread. Text goes into the model at STREAM_MS, however fast the engine is.

    There may be several: the engine makes one after the other.
    """

    changed = Signal()  # one has begun or ended
    refused = Signal(object, object)  # ReplyRun that never began, JobFailed or None: its load came to nothing
    failed = Signal(object)  # JobFailed, after the reply had begun
    finished = Signal(object, object)  # ReplyRun, GenerationDone

    def __init__(self, bridge: EngineBridge, pair_state: PairState, keeper: ChatKeeper, items: ChatItemModel) -> None:
        super().__init__()
        self._bridge = bridge
        self._pair_state = pair_state
        self._keeper = keeper
        self._items = items
        self._runs: list[ReplyRun] = []
        self._opens_thoughts: tuple[object, str, bool] | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(STREAM_MS)
        self._timer.timeout.connect(self._flush)
        self._checkpoint_timer = QTimer(self)
        self._checkpoint_timer.setInterval(CHECKPOINT_MS)
        self._checkpoint_timer.timeout.connect(self._checkpoint)
        bridge.engine_event.connect(self.on_engine_event)
        pair_state.changed.connect(self.on_pair_changed)

    def of(self, chat_id: int) -> ReplyRun | None:
        """The reply that is being made in that chat."""
        return next((run for run in self._runs if run.talk.chat_id == chat_id and not run.is_stopped), None)

    def talk(self, chat_id: int) -> Talk | None:
        """The conversation of a reply that is not over yet, so that nobody reads it from the disk meanwhile."""
        return next((run.talk for run in self._runs if run.talk.chat_id == chat_id), None)

    @property
    def n_running(self) -> int:
        return sum(not run.is_stopped for run in self._runs)

    def start(self, run: ReplyRun) -> None:
        """Ask for that reply: now, or when the pair is loaded."""
        self._runs.append(run)
        self._items.set_state(run.message, ReplyState.WAITING)
        if self._pair_state.phase is Phase.LOADED and self._pair_state.pair is not None:
            self._submit(run, self._pair_state.pair)
        self.changed.emit()

    def stop(self, run: ReplyRun) -> None:
        """What has come is kept, what still comes is not shown."""
        if run.is_stopped:
            return
        self._show_new(run)
        run.is_stopped = True
        run.close_thoughts()
        self._items.finish(run.message, ReplyState.STOPPED, None)
        self._save(run)
        if run.job_id is None:
            self._end(run)
        else:
            self._bridge.cancel(run.job_id)
            self.changed.emit()

    def stop_all(self) -> None:
        for run in list(self._runs):
            self.stop(run)

    # ---- asking

    def _submit(self, run: ReplyRun, pair: PairInfo) -> None:
        chosen = run.settings
        is_continued = run.purpose == "continue"
        before = run.talk.before(run.message)
        asked = self.asked_for(self.sent_part(run.talk, before), chosen.system_prompt)
        rows = asked.rows
        if is_continued:
            rows.append({"role": "assistant", "content": run.prefix})
        kwargs = (
            {} if chosen.thinking == "auto" or not pair.has_thinking else {"enable_thinking": chosen.thinking == "on"}
        )
        run.asked = AskedWith(
            seed=chosen.seed if chosen.seed >= 0 else secrets.randbelow(2**31),
            model_name=self._pair_state.title(),
            draft_name=pair.draft_name or "",
            device_name=pair.device_description or pair.device_name,
            draft_mode=self._pair_state.draft_mode,
            temperature=chosen.temperature,
            top_p=chosen.top_p,
            top_k=chosen.top_k,
            max_tokens=chosen.max_tokens,
        )
        run.splitter = ReplySplitter(not is_continued and self._starts_in_thoughts(chosen.thinking, kwargs))
        reader = self._pair_state.reader
        run.tokens = TokenRuns(reader.tokenizer.token_bytes if reader is not None else None)
        # A base model has no template: it continues the text as it stands.
        prompt = (
            ChatPrompt(rows, template_kwargs=kwargs, continue_last=is_continued)
            if pair.can_template
            else RawPrompt("\n\n".join(content_text(row["content"]) for row in rows))
        )
        self._items.set_state(run.message, ReplyState.QUEUED)
        self._timer.start()
        self._checkpoint_timer.start()
        run.job_id = self._bridge.generate(
            prompt,
            sampling=Sampling(
                temperature=chosen.temperature, top_k=chosen.top_k, top_p=chosen.top_p, seed=run.asked.seed
            ),
            draft=self._pair_state.draft_options(),
            max_tokens=chosen.max_tokens,
            pflash=asked.pflash,
        )

    def asked_for(self, messages: Sequence[Message], system_prompt: str) -> Asked:
        """What the engine is asked after these messages, as PFlash is set now."""
        choice = self._pair_state.pflash
        return asked_for(messages, system_prompt, choice, choice.options(self._pair_state.built_in_scorer))

    def _starts_in_thoughts(self, thinking: str, kwargs: dict[str, bool]) -> bool:
        """Whether this model's template opens the thoughts itself, so that the reply begins inside them."""
        reader = self._pair_state.reader
        if reader is None:
            return False
        if self._opens_thoughts is None or self._opens_thoughts[:2] != (reader, thinking):
            try:
                text = reader.render(ChatPrompt([{"role": "user", "content": "x"}], template_kwargs=kwargs)).text
            except AppError:  # it refuses a lone question: the real one will tell why
                text = ""
            self._opens_thoughts = (reader, thinking, opens_thinking(text))
        return self._opens_thoughts[2]

    def sent_part(self, talk: Talk, messages: Sequence[Message]) -> Sequence[Message]:
        """What the model reads: all, or what comes after the messages that the person chose to leave out."""
        first_id = talk.record.settings.get(FIRST_SENT)
        first = next((row for row, message in enumerate(messages) if message.message_id == first_id), 0)
        return messages[first:]

    @Slot()
    def on_pair_changed(self) -> None:
        for run in list(self._runs):
            if run.job_id is not None:
                if self._pair_state.phase in (Phase.LOADING, Phase.UNLOADING) and not run.is_stopped:
                    # The lane does one thing after another: else the load would wait for this reply's end.
                    self.stop(run)
            elif self._pair_state.phase is not Phase.LOADING:
                if self._pair_state.pair is not None:
                    self._submit(run, self._pair_state.pair)
                else:  # the load that this message waited for was refused or cancelled
                    self._end(run)
                    self.refused.emit(run, None)

    # ---- what the engine says

    @Slot(object)
    def on_engine_event(self, event: object) -> None:
        job_id = getattr(event, "job_id", None)
        run = next((run for run in self._runs if run.job_id == job_id and job_id is not None), None)
        if run is None:
            return
        match event:
            case GenerationDone():
                self._finish(run, event)
            case JobFailed():
                self._fail(run, event)
            case JobCancelled():
                self._end(run)
                self._items.finish(run.message, ReplyState.STOPPED, None)
                self._save(run)
            case _ if run.is_stopped:
                return
            case StepDone():
                run.add(event)
            case PromptReady():
                n_new = event.n_prompt_tokens - event.n_reused_tokens
                run.prefill = PrefillProgress(event.job_id, 0, n_new, 0.0)
            case PrefillProgress():
                run.prefill = event
            case ScoreProgress():
                run.rating = event
            case LoadProgress():  # of the scorer
                run.rating = ScoreProgress(event.job_id, 0, 0, 0.0)
            case PromptCompressed():
                run.compressed = event
            case JobQueued():
                pass

    @Slot()
    def _flush(self) -> None:
        for run in self._runs:
            if not run.is_stopped:
                self._show_new(run)

    def _show_new(self, run: ReplyRun) -> None:
        if run.raw:
            run.prefill = run.rating = None
            text, reasoning = run.advance()
            if text or reasoning:
                self._items.extend_reply(run.message, text, reasoning)
        elif run.prefill is not None:
            now, run.prefill, run.rating = run.prefill, None, None
            rated_s = run.compressed.load_s + run.compressed.score_s if run.compressed is not None else 0.0
            self._items.set_prefill(run.message, now.n_done_tokens, now.n_total_tokens, now.elapsed_s - rated_s)
        elif run.rating is not None:
            rating, run.rating = run.rating, None
            done, total = rating.n_done_tokens, rating.n_total_tokens
            self._items.set_prefill(run.message, done, total, rating.elapsed_s, is_rated=True)

    @Slot()
    def _checkpoint(self) -> None:
        for run in self._runs:
            text, reasoning = run.unsaved
            if text or reasoning:
                run.unsaved = ("", "")
                self._keeper.extend_reply(run.message, text, reasoning)
                self._items.set_looping(run.message, is_looping=_is_looping(run.message))

    def _finish(self, run: ReplyRun, done: GenerationDone) -> None:
        message = run.message
        if not run.is_stopped:
            run.advance()
            run.finish()
            message.text, message.reasoning = _split(run, done.text)
            message.accepted_runs = run.accepted_runs()
        run.close_thoughts()
        message.is_looping = _is_looping(message)
        facts = facts_of(
            done,
            reason=next((reason for reason, _ in run.reasons.most_common(1)), None),
            asked=run.asked,
            speed_up=run.speed_up,
            shortening=shortening_of(run.compressed, done, rated_s=run.rated_s),
            is_looping=message.is_looping,
        )
        is_cut = run.is_stopped or done.finish_reason == "cancelled"
        self._items.finish(message, ReplyState.STOPPED if is_cut else ReplyState.DONE, facts)
        self._end(run)
        self._save(run)
        self.finished.emit(run, done)

    def _fail(self, run: ReplyRun, failure: JobFailed) -> None:
        self._show_new(run)
        message = run.message
        has_text = bool(message.text or message.reasoning or failure.text)
        if failure.kind in REFUSALS and (not has_text or run.purpose == "continue") and not run.whole:
            self._end(run)
            self.refused.emit(run, failure)
            return
        run.finish()
        if failure.text:
            message.text, message.reasoning = max(
                (message.text, message.reasoning), _split(run, failure.text), key=lambda both: len(both[0] + both[1])
            )
        run.close_thoughts()
        log.info("a reply failed: %s", failure.message)
        self._items.fail(message, told(failure.cause, failure.message))
        self._end(run)
        self._save(run)
        self.failed.emit(failure)

    def _save(self, run: ReplyRun) -> None:
        run.unsaved = ("", "")
        if run.talk.has(run.message):
            self._keeper.save(run.talk, [run.message])

    def _end(self, run: ReplyRun) -> None:
        if run in self._runs:
            self._runs.remove(run)
            if not any(one.job_id is not None for one in self._runs):
                self._timer.stop()
                self._checkpoint_timer.stop()
            self.changed.emit()


def _is_looping(message: Message) -> bool:
    """Whether what comes last in it is a loop: the answer, or the thoughts where there is none yet."""
    return is_looping(message.text or message.reasoning)


def _split(run: ReplyRun, raw: str) -> tuple[str, str]:
    """Answer and thoughts of a whole reply, with what was there before when it was continued."""
    splitter = ReplySplitter(run.splitter.starts_in_thoughts)
    splitter.feed(raw)
    splitter.finish()
    text, reasoning = splitter.take()
    return run.prefix + text, reasoning or (run.message.reasoning if run.purpose == "continue" else "")
