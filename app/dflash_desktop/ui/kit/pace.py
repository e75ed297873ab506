"""How often we paint: the one home of every period in the window. All in milliseconds."""

STREAM_MS = 33
"""Streaming text: about 30 repaints a second, however fast tokens come."""

PLOT_MS = 100
"""Plots, sparklines and the draft tree."""

NUMBERS_MS = 250
"""Numbers that people read: four changes a second at most."""

MEMORY_SAMPLE_MS = 100
"""How often memory is looked at, by a thread of its own, while somebody is watching."""

AGE_MS = 1000
"""How long ago something was, in words."""

SAVE_MS = 1500
"""Unsent text is on disk this long after the last key, so that a crash costs little."""

CHECKPOINT_MS = 250
"""What a reply gained, and unsent text, are on their way to the disk this often: a crash costs less than a second."""

PLAN_MS = 80
"""A load is planned this long after the last move of a slider."""
