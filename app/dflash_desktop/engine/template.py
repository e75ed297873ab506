"""A model's chat template in Jinja2's immutable sandbox, as transformers runs it, with limits and with marked text.

Same switches and extras as transformers 5: trim_blocks, lstrip_blocks, loop controls, `tojson` without escapes,
`raise_exception`, `strftime_now`, the `generation` block, plain `dict` and a `namespace` without underscore names. On
top of it: every operation keeps the marks of `marked.py`; loops, time and sizes are limited, because a model file is
somebody else's program; month and day names are English whatever the C locale says.
"""

from __future__ import annotations

import json
import re
import threading
import time
from datetime import datetime
from functools import wraps
from types import BuiltinMethodType, MethodType
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension
from jinja2.runtime import Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from dflash_desktop.engine import marked
from dflash_desktop.engine.marked import Marked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from jinja2.compiler import Frame
    from jinja2.parser import Parser
    from jinja2.runtime import Context

MAX_TEMPLATE_CHARS = 1_000_000
MAX_PROMPT_CHARS = 16_000_000  # four million tokens: more than any context
MAX_LOOP_TURNS = 2_000_000
MAX_LIST_ITEMS = 1_000_000
MAX_SECONDS = 4.0

_UNNEEDED_FILTERS = ("urlize", "striptags", "xmlattr", "pprint", "random", "center", "filesizeformat")
_WIDE_FORMAT = re.compile(r"%[^a-zA-Z%]*(?:\d{5,}|\*)|\{[^}]*\d{5,}|\{[^}]*\{")


class TooMuch(TemplateError):
    """The template asked for more time or memory than any prompt needs."""


class _Limits(threading.local):
    """What the render on this thread may still use."""

    turns = 0
    deadline = float("inf")

    def restart(self) -> None:
        self.turns = MAX_LOOP_TURNS
        self.deadline = time.monotonic() + MAX_SECONDS

    def check(self) -> None:
        if time.monotonic() > self.deadline:
            raise TooMuch(f"it ran for more than {MAX_SECONDS:.0f} seconds")

    def count(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.turns -= 1
            if self.turns < 0:
                raise TooMuch(f"its loops ran more than {MAX_LOOP_TURNS} times")
            if not self.turns % 256:
                self.check()
            yield item


class _Counted:
    """What a loop runs over, with its length as the template knows it."""

    def __init__(self, items: Any, limits: _Limits) -> None:
        self._items, self._limits = items, limits

    def __iter__(self) -> Iterator[Any]:
        return self._limits.count(self._items)

    def __len__(self) -> int:
        return len(self._items)


class _Generator(CodeGenerator):
    """Jinja's own, with `~` joining through the environment (Jinja's would drop the marks)."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self.write("environment.join_parts((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class _GenerationBlock(Extension):
    """{% generation %} ... {% endgeneration %}: training finds the assistant's words by it; here it changes nothing."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _SafeNamespace(Namespace):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        attributes = dict(*args, **kwargs)
        for name in attributes:
            _check_attribute(name)
        super().__init__(attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_attribute(name)
        super().__setitem__(name, value)


def _check_attribute(name: Any) -> None:
    if str(name).startswith("_"):
        raise SecurityError(f"a namespace may not hold {name!r}")


class _Environment(ImmutableSandboxedEnvironment):
    code_generator_class = _Generator
    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        # optimized=False: else constants are folded, hence run, while the template is compiled
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            extensions=[_GenerationBlock, "jinja2.ext.loopcontrols"],
        )
        self.limits = _Limits()
        for name in _UNNEEDED_FILTERS:
            self.filters.pop(name, None)
        self.filters["tojson"] = _tojson
        self.filters["join"] = _join_filter
        self.filters["format"] = lambda pattern, *values, **named: marked.percent(str(pattern), named or values)
        self.filters = {name: self._guarded(function) for name, function in self.filters.items()}
        self.filters["counted"] = lambda items: _Counted(items, self.limits)
        self.globals = {
            "range": self.globals["range"],
            "joiner": self.globals["joiner"],
            "cycler": self.globals["cycler"],
            "namespace": _SafeNamespace,
            "dict": lambda *args, **kwargs: dict(*args, **kwargs),
            "raise_exception": _raise_exception,
            "strftime_now": strftime_now,
        }

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        for loop in source.find_all(nodes.For):
            if loop.recursive:
                raise jinja2.TemplateSyntaxError("recursive loops are not supported", loop.lineno)
            loop.iter = nodes.Filter(loop.iter, "counted", [], [], None, None)
            loop.iter.set_environment(self)
        return super()._generate(source, *args, **kwargs)

    # `concat` joins the pieces of a template, a macro or a block; an attribute of that name is Jinja's own hook.
    def concat(self, parts: Iterable[str]) -> str:
        return self.join_parts(parts)

    def join_parts(self, parts: Iterable[Any], separator: str = "") -> str:
        kept: list[str] = []
        length = 0
        for part in parts:
            text = part if isinstance(part, str) else str(part)
            length += len(text) + len(separator)
            _check_length(length)
            kept.append(text)
        if any(isinstance(part, Marked) for part in kept) or isinstance(separator, Marked):
            return marked.join(kept, separator)
        return separator.join(kept)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            _check_pattern(left)
            return marked.percent(left, right)
        if operator == "+" and hasattr(left, "__len__") and hasattr(right, "__len__"):
            _check_size(left, len(left) + len(right))
        if operator == "*" and (isinstance(left, (str, list, tuple)) or isinstance(right, (str, list, tuple))):
            sequence, times = (left, right) if hasattr(left, "__len__") else (right, left)
            _check_size(sequence, len(sequence) * int(times))
        if operator in ("*", "**"):
            _check_number(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, function: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(function, Macro):  # made of operations that keep their own marks
            return super().call(context, function, *args, **kwargs)
        self.limits.check()
        method = getattr(function, "__wrapped__", function)  # the sandbox wraps `format`
        owner = getattr(method, "__self__", None)
        owner = owner if isinstance(method, (BuiltinMethodType, MethodType)) and isinstance(owner, str) else None
        if owner is not None:
            name = method.__name__
            if name == "join" and len(args) == 1 and not kwargs:
                return self.join_parts(args[0], owner)
            _check_text_call(name, owner, args)
        result = super().call(context, function, *args, **kwargs)
        return _settle(result, (owner, args, kwargs))

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A filter that keeps the limits, and whose result is the user's if it mixes texts in ways of its own."""

        @wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            self.limits.check()
            texts = [arg for arg in args if isinstance(arg, str)]
            if texts:
                _check_text_call(function.__name__.removeprefix("do_"), texts[0], args[args.index(texts[0]) + 1 :])
            return _settle(function(*args, **kwargs), (args, kwargs))

        return guarded


def _settle(result: Any, sources: Any) -> Any:
    if isinstance(result, str) and not isinstance(result, (Marked, Undefined)):
        _check_length(len(result))
        if marked.holds_user_text(sources):
            return Marked.user(str.__str__(result))
    return result


def _check_length(n_chars: int) -> None:
    if n_chars > MAX_PROMPT_CHARS:
        raise TooMuch(f"it wrote more than {MAX_PROMPT_CHARS} characters")


def _check_size(sequence: Any, n_items: int) -> None:
    if isinstance(sequence, str):
        _check_length(n_items)
    elif n_items > MAX_LIST_ITEMS:
        raise TooMuch(f"it built a list of more than {MAX_LIST_ITEMS} items")


def _check_number(operator: str, left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        n_bits = left.bit_length() * max(right, 1) if operator == "**" else left.bit_length() + right.bit_length()
        if n_bits > 4096:
            raise TooMuch("it computed a number of more than 4096 bits")


def _check_pattern(pattern: str) -> None:
    if _WIDE_FORMAT.search(pattern):
        raise TooMuch("it formats something to a width of 10,000 or more")


def _check_text_call(name: str, owner: str, args: tuple[Any, ...]) -> None:
    """Refuse calls whose result could be huge although what goes in is small."""
    if any(isinstance(arg, int) and abs(arg) > MAX_LIST_ITEMS for arg in args):
        raise TooMuch(f"it called {name} with a number above {MAX_LIST_ITEMS}")
    if name in ("format", "format_map"):
        _check_pattern(owner)
    if name == "replace" and len(args) >= 2 and isinstance(args[0], str) and isinstance(args[1], str):
        _check_length(len(owner) + owner.count(args[0]) * len(args[1]))
    if name in ("indent", "expandtabs", "ljust", "rjust", "zfill", "center"):
        widths = [arg for arg in args if isinstance(arg, int)]
        _check_length(len(owner) + max(widths, default=0) * (owner.count("\n") + owner.count("\t") + 1))


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as transformers' templates expect it: no escapes for HTML, none for other letters than ASCII."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


@jinja2.pass_environment
def _join_filter(
    environment: _Environment, items: Iterable[Any], d: str = "", attribute: str | int | None = None
) -> str:
    if attribute is not None:
        items = (environment.getitem(item, attribute) for item in items)
    return environment.join_parts(items, str(d))


def _raise_exception(message: str) -> None:
    raise TemplateError(str(message))


def strftime_now(pattern: str) -> str:
    """The present time as `pattern` says, with English names even where the C locale has others."""
    now = datetime.now().astimezone()
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    months = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
              "November", "December")  # fmt: skip
    names = {
        "%A": days[now.weekday()],
        "%a": days[now.weekday()][:3],
        "%B": months[now.month - 1],
        "%b": months[now.month - 1][:3],
        "%h": months[now.month - 1][:3],
        "%p": "AM" if now.hour < 12 else "PM",
        "%c": now.isoformat(sep=" ", timespec="seconds"),
        "%x": now.date().isoformat(),
        "%X": now.time().isoformat(timespec="seconds"),
    }
    english = re.sub("%(?:%|[AaBbhpcxX])", lambda part: names.get(part.group(), part.group()), pattern)
    return now.strftime(english)


class ChatTemplate:
    """A compiled template. Any thread may render it."""

    def __init__(self, source: str) -> None:
        """Compile. Raises TemplateError (jinja2's) with the line when it is no sound template."""
        if len(source) > MAX_TEMPLATE_CHARS:
            raise TooMuch(f"it is {len(source)} characters long")
        self.source = source
        self._environment = _Environment()
        try:
            self._template = self._environment.from_string(source)
        except RecursionError as error:
            raise TooMuch("it is nested too deeply") from error

    def render(self, variables: Mapping[str, Any]) -> Marked:
        """Render; `variables` hold plain or Marked data.

        Raises jinja2's TemplateError, also where the template trips over its data (a missing part, a wrong type).
        """
        self._environment.limits.restart()
        context = self._template.new_context(dict(variables))
        try:
            text = self._environment.join_parts(self._template.root_render_func(context))
        except TemplateError:
            raise
        except RecursionError as error:
            raise TooMuch("it is nested too deeply") from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise TemplateError(f"{type(error).__name__}: {error}") from error
        return text if isinstance(text, Marked) else Marked(text, marked.mask_of(text))
