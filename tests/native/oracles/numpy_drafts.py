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

    def shifted(self, depth: int, before: int) -> Array:
        """DSpark: the logits when `before` stands before the position."""
        added = self.weights["markov_w2.weight"] @ self.weights["markov_w1.weight"][before]
        found: Array = self.logits[depth] + added
        return found

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


def _heads(x: Array, n_heads: int) -> Array:
    return x.reshape(len(x), n_heads, -1)


def _kernels(spec: DraftSpec, w: Mapping[str, Array], part: str, rows: Array) -> Array | None:
    """DFlash2: the computed part of the convolutions around a part of the layer, n x sides x taps x groups."""
    if spec.kind != "dflash2":
        return None
    projected: Array = rows @ w[f"{part}_conv_proj.weight"].T
    return projected.reshape(len(rows), 2, spec.conv_taps, spec.n_embd // spec.conv_group)


def _filter(spec: DraftSpec, w: Mapping[str, Array], part: str, rows: Array, kernels: Array | None, side: int) -> Array:
    if kernels is None:
        return rows
    return _convolve(rows, kernels[:, side], w[f"{part}_conv_base"][side], spec.conv_group)


def _attention(spec: DraftSpec, w: Mapping[str, Array], number: int, context: Array, entering: Array) -> Array:
    """`context`: fused features, n x D; `entering`: normed block rows. What goes into the residual sum."""
    eps = spec.epsilon
    kernels = _kernels(spec, w, "attn", entering)
    h = _filter(spec, w, "attn", entering, kernels, 0)
    every = np.arange(len(context) + len(h))
    positions = every[len(context) :]
    if spec.is_context_normed or spec.gate != "none" or spec.has_feature_norms:
        context = rms(context, w["attn_norm.weight"], eps)
    rows = np.concatenate([context, h])
    q = _rope(
        rms(_heads(h @ w["attn_q.weight"].T, spec.n_head), w["attn_q_norm.weight"], eps), positions, spec.rope_base
    )
    k = _rope(
        rms(_heads(rows @ w["attn_k.weight"].T, spec.n_head_kv), w["attn_k_norm.weight"], eps), every, spec.rope_base
    )
    v = _heads(rows @ w["attn_v.weight"].T, spec.n_head_kv)
    k, v = (np.repeat(part, spec.n_head // spec.n_head_kv, axis=1) for part in (k, v))
    is_sliding = bool(spec.sliding) and spec.sliding[number]
    is_causal = is_sliding if spec.is_causal is None else spec.is_causal
    gap = positions[:, None] - every[None]
    visible = (gap >= 0 if is_causal else np.ones_like(gap, bool)) & (gap < spec.window if is_sliding else True)
    scores = np.einsum("nhd,mhd->hnm", q, k) * (spec.attention_scale or 1 / np.sqrt(spec.head_dim))
    probabilities = np.exp(log_softmax(np.where(visible[None], scores, -np.inf)))
    out = np.einsum("hnm,mhd->nhd", probabilities, v) * spec.value_scale
    if spec.gate != "none":
        gate = np.logaddexp(0, h @ w["attn_gate.weight"].T)
        out = out * gate.reshape(len(h), spec.n_head, -1)
    out = _filter(spec, w, "attn", out.reshape(len(h), -1) @ w["attn_output.weight"].T, kernels, 1)
    return rms(out, w["post_attention_norm.weight"], eps) if spec.has_sandwich_norms else out


def _feed_forward(spec: DraftSpec, w: Mapping[str, Array], entering: Array) -> Array:
    kernels = _kernels(spec, w, "ffn", entering)
    h = _filter(spec, w, "ffn", entering, kernels, 0)
    gated = _activation(h @ w["ffn_gate.weight"].T, is_gelu=spec.is_gelu) * (h @ w["ffn_up.weight"].T)
    out = _filter(spec, w, "ffn", gated @ w["ffn_down.weight"].T, kernels, 1)
    return rms(out, w["post_ffw_norm.weight"], spec.epsilon) if spec.has_sandwich_norms else out


def draft_block(
    spec: DraftSpec, weights: Mapping[str, Array], embeddings: Array, head: Array, features: Sequence[Array], root: int
) -> DraftedBlock:
    """`features` are the target's residual streams after spec.feature_layers, n x D each; `root` comes after them."""
    w = {name: data if name == "d2t" else data.astype(np.float64) for name, data in weights.items()}
    eps = spec.epsilon
    inputs = [feature.astype(np.float64) for feature in features]
    if spec.has_feature_norms:
        inputs = [rms(x, w[f"dflash.aux_hidden_norm.{i}.weight"], eps) for i, x in enumerate(inputs)]
    fused = rms(np.concatenate(inputs, axis=1) @ w["fc.weight"].T, w["enc.output_norm.weight"], eps)
    own = w.get("token_embd.weight", embeddings.astype(np.float64))
    x = own[[root] + [spec.mask_token] * (spec.block_size - 1)] * spec.embedding_scale
    for i in range(spec.n_layers):
        block = f"blk.{i}."
        layer = {name.removeprefix(block): data for name, data in w.items() if name.startswith(block)}
        x = x + _attention(spec, layer, i, fused, rms(x, layer["attn_norm.weight"], eps))
        x = x + _feed_forward(spec, layer, rms(x, layer["ffn_norm.weight"], eps))
        x = x * layer.get("layer_output_scale.weight", 1)
    hidden = rms(x, w["output_norm.weight"], eps)
    drafted = hidden if spec.has_anchor_row else hidden[1:]
    logits = drafted @ w.get("output.weight", head.astype(np.float64)).T * spec.logit_scale
    if spec.logit_softcap:
        logits = np.tanh(logits / spec.logit_softcap) * spec.logit_softcap
    return DraftedBlock(spec, w, root, hidden, drafted, logits)
