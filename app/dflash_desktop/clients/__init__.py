"""Settings of other programs: show, copy, write, undo. Only our own keys are touched."""
