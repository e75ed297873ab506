"""What PFlash is asked for a conversation, and what is told of it afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dflash_desktop.chats.records import Attachment
from dflash_desktop.engine.events import GenerationDone
from dflash_desktop.engine.pflash.chat import plan_chat
from dflash_desktop.engine.pflash.compress import Compression, Shortened
from dflash_desktop.engine.pflash.options import PflashOptions, PromptCompressed
from dflash_desktop.engine.pflash.segments import Segment
from dflash_desktop.engine.pflash.selection import Unit
from dflash_desktop.engine.prompt import content_text
from dflash_desktop.settings.pair_memory import PairLoad
from dflash_desktop.ui.chats.facts import AskedWith, facts_from, facts_of
from dflash_desktop.ui.chats.messages import Message, message_from, prompt_messages
from dflash_desktop.ui.chats.prompting import asked_for
from dflash_desktop.ui.chats.shortening_facts import ShorteningFacts, shortening_of
from dflash_desktop.ui.engine.pflash_choice import PflashChoice, choice_from, with_choice
from dflash_desktop.ui.kit import numbers

SCORER = Path("/m/scorer.gguf")
AUTO = PflashChoice("auto", SCORER)
PASTED = Attachment("", "pasted", "Pasted text.\n\nOf two paragraphs.", 30)
FILE = Attachment("notes.txt", "text", "Notes in a file.\n\n" + "word " * 400, 2000)
TALK = [
    Message("user", "Hello", attachments=(PASTED,)),
    Message("assistant", "Hi."),
    Message("user", "Stopped at once.", keep=0.4),
    Message("assistant", ""),
    Message("user", "What do the notes say?", attachments=(FILE, PASTED)),
]


def asked(choice: PflashChoice, talk: list[Message] = TALK) -> tuple[list[dict[str, object]], PflashOptions]:
    found = asked_for(talk, "Be brief.", choice, choice.options(None))
    return found.rows, found.pflash


def test_switched_off_the_request_is_what_it_was() -> None:
    talk = [replace_keep(message, None) for message in TALK]
    rows, options = asked(PflashChoice(), talk)
    assert rows == prompt_messages(talk, "Be brief.")
    assert options == PflashOptions()


def replace_keep(message: Message, keep: float | None) -> Message:
    copy = Message(message.role, message.text, attachments=message.attachments)
    copy.keep = keep
    return copy


def test_the_marks_change_no_character_of_the_prompt() -> None:
    rows, options = asked(AUTO)
    plain = prompt_messages(TALK, "Be brief.")
    assert [(row["role"], content_text(row["content"])) for row in rows] == [(r["role"], r["content"]) for r in plain]
    assert options.chosen == ((3, 0.4),)
    assert options.mode == "auto"
    plan = plan_chat(rows, has_tools=False, count=lambda text: len(text.split()))
    assert plan.questions[-1][0].split() == ["Stopped", "at", "once.", "What", "do", "the", "notes", "say?"]
    (region,) = plan.regions
    kept = [region.text[u.start : u.end] for u, pinned in zip(region.units, region.is_pinned, strict=True) if pinned]
    assert any('<file name="notes.txt">' in unit for unit in kept)
    assert any("</file>" in unit for unit in kept)
    assert plan.n_droppable > 400


def test_a_message_that_was_sent_shortened_stays_so_when_pflash_is_switched_off() -> None:
    rows, options = asked(PflashChoice("off", SCORER))
    assert options.mode == "always"
    assert options.chosen == ((1, 1.0), (3, 0.4))
    assert options.whole == {1}
    assert len(rows) == 4


def test_the_share_is_kept_with_the_message() -> None:
    assert message_from(TALK[2].record()).keep == 0.4
    assert message_from(TALK[0].record()).keep is None
    assert message_from(replace(TALK[2].record(), facts={"keep": "much"})).keep is None


def test_what_was_chosen_for_a_pair_is_remembered() -> None:
    choice = PflashChoice("always", SCORER, "1000:0.5,2000:0.25", 4096, "gpu-1", True, False)
    assert choice_from(with_choice(PairLoad(), choice)) == choice
    assert choice_from(PairLoad()) == PflashChoice()
    assert choice_from(replace(PairLoad(), pflash_mode="maybe", pflash_curve="2:1,1:2")) == PflashChoice()


def done(n_prompt: int = 400, prefill_s: float = 2.0) -> GenerationDone:
    return GenerationDone(1, "", (), "stop", None, n_prompt, 0, 1, 0, 0, 1, 0.0, 1.0, prefill_s, 1.0, 1, 0.0, 0.0)


def compressed(load_s: float = 0.5, score_s: float = 1.5) -> PromptCompressed:
    units = (Unit(Segment(0, 4, "prose"), 600, 0.0), Unit(Segment(4, 8, "prose"), 200, 1.0, "score"))
    found = Compression(({"role": "user", "content": ""},), (Shortened(0, "abcdefgh", units, "efgh"),), 800, 200)
    return PromptCompressed(1, found, "", "scorer", load_s, score_s)


def test_the_saving_is_estimated_from_the_measured_prefill() -> None:
    found = shortening_of(compressed(), done(), rated_s=0.25)
    assert found is not None
    assert (found.n_before, found.n_after) == (1000, 400)
    assert found.rated_s == 2.25
    assert found.saved_s is not None
    assert abs(found.saved_s - (600 / (399 / 2.0) - 2.25)) < 1e-9
    assert f"about {numbers.count(1000)} → {numbers.tokens(400)}" in found.words()
    assert "saved" in found.words()
    slow = shortening_of(compressed(score_s=9.0), done(), rated_s=0.0)
    assert slow is not None
    assert "longer" in slow.words()
    again = shortening_of(compressed(0.0, 0.0), done(), rated_s=0.0)
    assert again is not None
    assert again.saved_s is None
    assert again.words().startswith("prompt shortened before")


def test_a_scorer_that_failed_is_told_and_other_reasons_stand_in_the_tooltip() -> None:
    failed = shortening_of(PromptCompressed(1, None, "The scorer failed: no memory.", "scorer"), done(), rated_s=0.0)
    short = shortening_of(PromptCompressed(1, None, "Nothing in it is long enough."), done(), rated_s=0.0)
    assert failed is not None
    assert short is not None
    assert failed.words() == "prompt sent whole: The scorer failed: no memory."
    assert short.words() == ""
    assert "long enough" in short.details()[0]
    assert shortening_of(None, done(), rated_s=0.0) is None


def test_the_facts_survive_the_store() -> None:
    found = ShorteningFacts(1000, 400, 20, 2.0, 1.5, "scorer")
    facts = facts_of(done(), reason=None, asked=AskedWith(), shortening=found)
    again = facts_from(facts.as_dict())
    assert again == facts
    assert numbers.count(1000) in facts.line()
    assert "scorer" in facts.details()
    older = facts.as_dict()
    del older["shortening"]
    assert facts_from(older) == facts_of(done(), reason=None, asked=AskedWith())
