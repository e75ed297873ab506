"""How often we paint: the one home of every period in the window (style.md, habit 10). All in milliseconds."""

STREAM_MS = 33
"""Streaming text: about 30 repaints a second, however fast tokens come."""

PLOT_MS = 100
"""Plots, sparklines and the draft tree."""

NUMBERS_MS = 250
"""Numbers that people read: four changes a second at most."""

MEMORY_SAMPLE_MS = 500
"""How often the process's own memory is looked at, while somebody is watching."""

SAVE_MS = 1500
"""Unsent text is on disk this long after the last key, so that a crash costs little."""
