"""Drafts of every kind in numpy, from the formulas of their authors: hidden rows, candidates, conditionals, trees."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from support.drafts import DraftSpec

    Array = npt.NDArray[Any]


def rms(x: Array, weight: Array, epsilon: float) -> Array:
    out: Array = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight
    return out


def sigmoid(x: Array) -> Array:
    out: Array = 1 / (1 + np.exp(-x))
    return out


def log_softmax(x: Array) -> Array:
    shifted = x - x.max(axis=-1, keepdims=True)
    out: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return out


def _rope(x: Array, positions: Array, base: float) -> Array:
    half = x.shape[-1] // 2
    angle = positions[:, None] * base ** (-np.arange(half) / half)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def _activation(x: Array, *, is_gelu: bool) -> Array:
    if is_gelu:
        out: Array = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        return out
    return x * sigmoid(x)


def _convolve(rows: Array, dynamic: Array, base: Array, group: int) -> Array:
    """rows n x D; dynamic n x taps x groups; base taps x D."""
    out = np.zeros_like(rows)
    for t in range(len(rows)):
        for tap in range(base.shape[0]):
            if t >= tap:
                out[t] += (base[tap] + np.repeat(dynamic[t, tap], group)) * rows[t - tap]
    return out


@dataclass(frozen=True)
class DraftedBlock:
    """One block: final hidden rows, logits of the drafted positions over the draft's own vocabulary."""

    spec: DraftSpec
    weights: Mapping[str, Array]
    root: int
    hidden: Array
    drafted: Array  # the hidden rows that draft
    logits: Array  # as drafted, d x V of the draft

    @property
    def tokens(self) -> Array:
        """The target's token of each column of the logits."""
        found: Array = self.weights.get("d2t", np.arange(self.logits.shape[1]))
        return found

    def _columns(self) -> dict[int, int]:
        return {int(token): column for column, token in enumerate(self.tokens)}

    def shifted(self, depth: int, before: int) -> Array:
        """DSpark: the logits when `before` stands before the position."""
        return self.logits[depth] + self.weights["markov_w2.weight"] @ self.weights["markov_w1.weight"][before]

    def greedy_path(self) -> list[int]:
        """What the authors' own code drafts at temperature 0."""
        path: list[int] = []
        before = self.root
        for depth in range(len(self.logits)):
            if self.spec.kind == "dspark":
                before = int(self.tokens[np.argmax(self.shifted(depth, before))])
            elif self.spec.kind == "dflash2":
                columns, scores = self.selector_scores(depth, before)
                before = int(self.tokens[columns[np.argmax(scores)]])
            else:
                before = int(self.tokens[np.argmax(self.logits[depth])])
            path.append(before)
        return path

    def selector_scores(self, depth: int, before: int) -> tuple[Array, Array]:
        """DFlash2: the columns of the candidates, and their scores after `before`."""
        w = self.weights
        columns = np.argsort(-self.logits[depth], kind="stable")[: self.spec.top_k]
        weight = w["selector_predecessor.weight"][before] * (w["selector_hidden.weight"] @ self.drafted[depth])
        successors = w["selector_successor.weight"][self.tokens[columns]]
        return columns, self.logits[depth, columns] + successors @ weight

    def confidence(self, depth: int, before: int) -> float:
        """DSpark: the probability that the draft is right there; 1 without such a head."""
        if self.spec.kind != "dspark" or self.spec.confidence == "none":
            return 1.0
        row = self.drafted[depth]
        if self.spec.confidence == "both":
            row = np.concatenate([row, self.weights["markov_w1.weight"][before]])
        return float(sigmoid(self.weights["conf_proj.weight"][0] @ row + self.weights["conf_proj.bias"][0]))

    def candidates(self, depth: int, path: Sequence[int], k: int) -> dict[int, float]:
        """Log-probabilities of the engine's candidates after a path of drafted tokens.

        Heads that look at the token before only move probability between the candidates, which keep together what the
        logits alone give them; on DSpark's greedy path they have what the head gives them among all tokens.
        """
        before = path[-1] if path else self.root
        alone = log_softmax(self.logits[depth])
        if self.spec.kind == "dflash":
            columns = np.argsort(-alone, kind="stable")[:k]
            found = alone[columns]
        elif self.spec.kind == "dflash2":
            columns, scores = self.selector_scores(depth, before)
            found = log_softmax(scores) + np.log(np.exp(alone[columns]).sum())
        else:
            greedy = self.greedy_path()
            before_on_path = greedy[depth - 1] if depth else self.root
            on_path = self.shifted(depth, before_on_path)
            columns = np.array(sorted({*np.argsort(-on_path)[:k].tolist(), *np.argsort(-alone)[:k].tolist()}))
            if before == before_on_path:
                found = log_softmax(on_path)[columns]
            else:
                mass = np.log(np.exp(alone[columns]).sum())
                found = log_softmax(self.shifted(depth, before)[columns]) + mass
            found = found + min(0.0, np.log(self.confidence(depth, before)) - found.max())
        return {int(self.tokens[column]): float(value) for column, value in zip(columns, found, strict=True)}

    def best_paths(self, k: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        """Paths with their log-probabilities, likeliest first."""
        number = itertools.count()
        heap: list[tuple[float, int, tuple[int, ...]]] = [(0.0, next(number), ())]
        while heap:
            weight, _, path = heapq.heappop(heap)
            if path:
                yield -weight, path
            if len(path) < len(self.logits):
                for token, logprob in self.candidates(len(path), path, k).items():
                    heapq.heappush(heap, (weight - logprob, next(number), (*path, token)))


def draft_block(
    spec: DraftSpec, weights: Mapping[str, Array], embeddings: Array, head: Array, features: Sequence[Array], root: int
) -> DraftedBlock:
    """`features` are the target's residual streams after spec.feature_layers, n x D each; `root` comes after them."""
    w = {name: data if name == "d2t" else data.astype(np.float64) for name, data in weights.items()}
    n, block, eps = len(features[0]), spec.block_size, spec.epsilon
    heads = lambda x, count: x.reshape(len(x), count, -1)  # noqa: E731
    inputs = [feature.astype(np.float64) for feature in features]
    if spec.has_feature_norms:
        inputs = [rms(x, w[f"dflash.aux_hidden_norm.{i}.weight"], eps) for i, x in enumerate(inputs)]
    fused = rms(np.concatenate(inputs, axis=1) @ w["fc.weight"].T, w["enc.output_norm.weight"], eps)
    own = w.get("token_embd.weight", embeddings.astype(np.float64))
    x = own[[root] + [spec.mask_token] * (block - 1)] * spec.embedding_scale
    past, positions = np.arange(n), np.arange(n, n + block)
    is_context_normed = spec.is_context_normed or spec.gate != "none" or spec.has_feature_norms
    for i in range(spec.n_layers):
        name = f"blk.{i}."
        entering = rms(x, w[f"{name}attn_norm.weight"], eps)
        h = entering

        def kernels(part: str, rows: Array, name: str = name) -> Array | None:
            if spec.kind != "dflash2":
                return None
            projected = rows @ w[f"{name}{part}_conv_proj.weight"].T
            return projected.reshape(len(rows), 2, spec.conv_taps, spec.n_embd // spec.conv_group)

        def convolve(part: str, rows: Array, dynamic: Array | None, side: int, name: str = name) -> Array:
            if dynamic is None:
                return rows
            return _convolve(rows, dynamic[:, side], w[f"{name}{part}_conv_base"][side], spec.conv_group)

        dynamic = kernels("attn", entering)
        h = convolve("attn", h, dynamic, 0)
        q = rms(heads(h @ w[f"{name}attn_q.weight"].T, spec.n_head), w[f"{name}attn_q_norm.weight"], eps)
        q = _rope(q, positions, spec.rope_base)
        context = rms(fused, w[f"{name}attn_norm.weight"], eps) if is_context_normed else fused
        rows = np.concatenate([context, h])
        k = rms(heads(rows @ w[f"{name}attn_k.weight"].T, spec.n_head_kv), w[f"{name}attn_k_norm.weight"], eps)
        k = _rope(k, np.concatenate([past, positions]), spec.rope_base)
        v = heads(rows @ w[f"{name}attn_v.weight"].T, spec.n_head_kv)
        k, v = (np.repeat(part, spec.n_head // spec.n_head_kv, axis=1) for part in (k, v))
        is_sliding = bool(spec.sliding) and spec.sliding[i]
        is_causal = is_sliding if spec.is_causal is None else spec.is_causal
        gap = positions[:, None] - np.concatenate([past, positions])[None]
        visible = (gap >= 0 if is_causal else np.ones_like(gap, bool)) & (gap < spec.window if is_sliding else True)
        scale = spec.attention_scale or 1 / np.sqrt(spec.head_dim)
        scores = np.where(visible[None], np.einsum("nhd,mhd->hnm", q, k) * scale, -np.inf)
        out = np.einsum("hnm,mhd->nhd", np.exp(log_softmax(scores)), v) * spec.value_scale
        if spec.gate != "none":
            gate = np.logaddexp(0, h @ w[f"{name}attn_gate.weight"].T)
            out = out * gate.reshape(block, spec.n_head, -1)
        out = convolve("attn", out.reshape(block, -1) @ w[f"{name}attn_output.weight"].T, dynamic, 1)
        x = x + (rms(out, w[f"{name}post_attention_norm.weight"], eps) if spec.has_sandwich_norms else out)
        entering = rms(x, w[f"{name}ffn_norm.weight"], eps)
        dynamic = kernels("ffn", entering)
        h = convolve("ffn", entering, dynamic, 0)
        gated = _activation(h @ w[f"{name}ffn_gate.weight"].T, is_gelu=spec.is_gelu) * (h @ w[f"{name}ffn_up.weight"].T)
        out = convolve("ffn", gated @ w[f"{name}ffn_down.weight"].T, dynamic, 1)
        x = x + (rms(out, w[f"{name}post_ffw_norm.weight"], eps) if spec.has_sandwich_norms else out)
        if spec.has_sandwich_norms:
            x = x * w[f"{name}layer_output_scale.weight"]
    hidden = rms(x, w["output_norm.weight"], eps)
    drafted = hidden if spec.has_anchor_row else hidden[1:]
    logits = drafted @ w.get("output.weight", head.astype(np.float64)).T * spec.logit_scale
    if spec.logit_softcap:
        logits = np.tanh(logits / spec.logit_softcap) * spec.logit_softcap
    return DraftedBlock(spec, w, root, hidden, drafted, logits)
