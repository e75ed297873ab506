"""PFlash: which parts of a long prompt are prefilled. Pure code but for scorer.py."""
