"""Text that breaks tokenizers: chosen strings, and random ones by a fixed seed."""

# ruff: noqa: E501

from __future__ import annotations

import random

_WORDS = (
    "Hello, world!", "The quick brown fox", "don't can't I'll we've they're I'd it's I'm", "DON'T CAN'T I'LL WE'VE",
    "Don’t curly", "'s 't 're", "it''s", "a'b'c", "3.14159", "1234567890", "12 345 678", "1,000,000", "v1.2.3-rc4",
    "٣٤٥ ۱۲۳ १२३ Ⅷ ½ ² ①", "0x1F600", "€100 £5 ¥3", "a@b.c", "https://example.org/a?b=c&d=%20#e", "C:\\new\\table",
    "/usr/share/文/é", "snake_case camelCase PascalCase kebab-case", "x = y + z * (a - b) / c % d ** e", "a<b && c>d",
    "if (x) { return; }", "def f(x):\n    return x\n", "\tindented\n\t\ttwice\n", "for(;;){}//comment\n/*block*/",
    "<div class=\"a\">b</div>", "{\"a\": [1, 2.5, null, true], \"ü\": \"\\u00e9\"}", "SELECT * FROM t WHERE a = 'b';",
    "$ ls -la | grep '^d' > out 2>&1", "#!/bin/sh\r\necho hi\r\n", "a\r\nb\rc\nd", "\n", "\r", "\r\n", "\n\n\n", " \n ",
    "\n \n \n", " ", "  ", "   ", "    ", "     ", "\t", "\t\t", " \t ", "    \t", "a    b", "a \t b", "end ", "end  ",
    " start", "  start", "\u00a0nbsp\u00a0", "\u2003em\u2003space", "\u200bzero\u200bwidth", "\ufeffbom", "a\u2028b\u2029c",
    "\u3000全角　空白", "\x0b\x0c", "\x00", "a\x00b", "\x1b[31mred\x1b[0m", "\x7f", "\x85next", "Café déjà vu — 123 😊",
    " Việt", "Tiếng Việt rất đẹp", "Tie\u0302\u0301ng Vie\u0323\u0302t", "नमस्ते", "नमस्ते दुनिया", "ภาษาไทย", "สวัสดีครับ", "தமிழ்", "తెలుగు",
    "বাংলা", "ગુજરાતી", "ਪੰਜਾਬੀ", "മലയാളം", "ಕನ್ನಡ", "සිංහල", "မြန်မာ", "ខ្មែរ", "ລາວ", "བོད་སྐད་", "العربية", "مَرْحَبًا", "עברית", "שָׁלוֹם",
    "فارسی", "اردو", "한국어", "안녕하세요", "ㅋㅋㅋ", "\u1112\u1161\u11ab", "日本語", "こんにちは世界", "カタカナ", "ﾊﾝｶｸ", "中文", "你好，世界！", "繁體字",
    "𠮷野家", "家庭", "русский язык", "Ελληνικά", "ქართული", "հայերեն", "አማርኛ", "ᏣᎳᎩ", "ᐃᓄᒃᑎᑐᑦ", "ⵜⴰⵎⴰⵣⵉⵖⵜ", "𐌲𐌿𐍄", "𝕳𝖊𝖑𝖑𝖔",
    "ＡＢＣ１２３", "ﬁ ﬂ ﬃ", "ß ẞ İ ı", "ǆ ǅ Ǆ", "é e\u0301", "a\u0300\u0301\u0302\u0303", "\u0301alone", "Z̷̡̢a̸l̵g̶o̷", "😀", "😀😀😀",
    "👨‍👩‍👧", "👨‍👩‍👧‍👦 family", "👍🏽", "🏳️‍🌈", "🇩🇪🇫🇷", "1️⃣", "☺️", "❤️‍🔥", "🫠🪿", "→ ← ↑ ↓ ⇒", "∀x∈ℝ: x²≥0", "∑∫∂√∞≠≤≥", "½⅓¼", "°C µm Ω", "«guillemets» „quotes“ ‚single‘",
    "… — – ‐ ‑ ‒ ―", "· • ◦ ‣", "©®™", "§¶†‡", "♠♣♥♦", "█▓▒░", "┌─┐│└┘", "⠓⠑⠇⠇⠕", "🀄🃏", "\ue000\uf8ff", "\U000f0000", "\U0010fffd",
    "\ufffd", "\ufffe", "\uffff", "!!!???...", "!?!?", "....", "----", "====", "****", "____", "~~~~", "````", "((()))", "[[]]", "{{}}",
    "''''", '""""', "\\\\\\", "////", "||||", "&&&&", "%%%%", "$$$$", "####", "@@@@", "^^^^", "++++", "<<<>>>", ":;:;", ",,,,",
    "a.b.c.d", "e.g. i.e. etc.", "Mr. Smith's", "U.S.A.", "10:30am", "2024-07-26T12:34:56Z", "+49 (0)30 123-456", "50%", "#1", "C++ C# F#",
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_end|>\n<|im_start|>system\nx", "<|im_", "end|>", "<| im_end |>", "<|IM_END|>",
    "<file_sep>", "<repo_name>a", "x<|im_end|>y<|im_end|>", "<<|im_end|>>", "<think>hm</think>", "<tool_call>{}</tool_call>", "[INST] x [/INST]",
    "<s>x</s>", "<unk>", "<pad>", "<0x0A>", "▁▁▁", "Ġhello", "ĊĊ", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abababababababab",
    "lorem ipsum dolor sit amet " * 8, "x" * 300, " " * 100, "\n" * 50, "é" * 60, "😀" * 40, "家" * 60, "1" * 100, "a b " * 50, "",
)  # fmt: skip

_RANGES = (
    (0x20, 0x7F), (0x20, 0x7F), (0x20, 0x7F), (0xA0, 0x250), (0x300, 0x370), (0x370, 0x590), (0x590, 0x900),
    (0x900, 0xE00), (0xE00, 0x1200), (0x1E00, 0x2000), (0x2000, 0x2070), (0x2100, 0x2C00), (0x3000, 0x3100),
    (0x4E00, 0xA000), (0xAC00, 0xD7A4), (0xFE00, 0xFFFE), (0x1F300, 0x1FA00), (0x9, 0xE),
)  # fmt: skip


def tricky_texts() -> list[str]:
    """Some 250 chosen strings."""
    return list(_WORDS)


def random_texts(count: int, *, seed: int = 1) -> list[str]:
    """Random Unicode of 1 to 60 characters, runs of one script mixed with runs of spaces and of others."""
    source = random.Random(seed)
    return ["".join(_run(source) for _ in range(source.randint(1, 8))) for _ in range(count)]


def _run(source: random.Random) -> str:
    low, high = source.choice(_RANGES)
    text = "".join(chr(source.randrange(low, high)) for _ in range(source.randint(1, 7)))
    return text + source.choice(("", "", " ", "  ", "\n", "\t"))
