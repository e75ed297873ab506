"""Random draft trees, as rows: the root first, parents before children."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

KINDS = ("random", "bushy", "chain", "star", "comb")


@dataclass(frozen=True, slots=True)
class Rows:
    tokens: list[int]
    parents: list[int]

    def path(self, row: int) -> list[int]:
        """Rows from the root to `row`."""
        found = []
        while row >= 0:
            found.append(row)
            row = self.parents[row]
        return found[::-1]

    def leaves(self) -> list[int]:
        return sorted(set(range(len(self.parents))) - set(self.parents))

    def path_tokens(self, row: int) -> list[int]:
        return [self.tokens[i] for i in self.path(row)]


def _parent(kind: str, row: int, random: np.random.RandomState) -> int:
    match kind:
        case "chain":
            return row - 1
        case "star":
            return 0
        case "comb":  # a spine of 12 rows, then teeth
            return row - 1 if row < 12 else int(random.randint(0, 12))
        case "bushy":
            return int(random.randint(0, row))
        case _:
            return int(random.randint(max(0, row - 6), row))


def random_rows(kind: str, n_rows: int, n_vocab: int, random: np.random.RandomState, root: int | None = None) -> Rows:
    """Siblings differ, as in every real tree."""
    tokens = [int(random.randint(0, n_vocab)) if root is None else root]
    parents = [-1]
    for row in range(1, n_rows):
        parent = _parent(kind, row, random)
        taken = {token for token, above in zip(tokens, parents, strict=True) if above == parent}
        token = int(random.randint(0, n_vocab))
        while token in taken:
            token = (token + 1) % n_vocab
        tokens.append(token)
        parents.append(parent)
    return Rows(tokens, parents)


def random_path(rows: Rows, random: np.random.RandomState) -> list[int]:
    """From the root to any row."""
    return rows.path(int(random.randint(0, len(rows.tokens))))
