"""The cards of other programs: show, copy, write, undo, and whether they have connected."""
