"""Linear interpolation of back-off models: p(w | h) = Σ_i λ_i p_i(w | h) for every n-gram that one of them lists."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kernelam.errors import KernelamError
from kernelam.lm.arpa import ArpaModel, Ints, Level
from kernelam.lm.perplexity import encoded, log10_probs
from kernelam.lm.pruning import Floats, renormalised
from kernelam.lm.text import BOS, EOS

TOLERANCE, MAX_STEPS = 1e-6, 10_000


def mixed(models: Sequence[ArpaModel], weights: Sequence[float]) -> ArpaModel:
    """The n-grams of all `models` with the mean of their probabilities, and backoffs that make histories sum to one.

    A word that a model lacks has no probability in it.
    """
    if len(weights) != len(models) or not all(0 <= weight <= 1 for weight in weights) or abs(sum(weights) - 1) > 1e-6:
        given = " ".join(f"{weight:g}" for weight in weights)
        raise KernelamError(
            f"{len(models)} models need {len(models)} weights of at least 0 whose sum is 1, not {given}"
        )
    for model in models:
        model.check_ends("it cannot be interpolated")
    inside = sorted({word for model in models for word in model.words} - {BOS, EOS})
    words = [BOS, *inside, EOS]
    union = ArpaModel(words, [])
    numbers = [np.array([union.index[word] for word in model.words]) for model in models]
    places = [np.array([model.index.get(word, -1) for word in words]) for model in models]
    for n in range(1, max(model.order for model in models) + 1):
        listed = [
            _keys(union, [own[column] for column in model.columns(n)])
            for model, own in zip(models, numbers, strict=True)
            if n <= model.order
        ]
        key = np.unique(np.concatenate(listed))
        union.levels.append(Level(key, np.zeros(len(key)), np.zeros(len(key))))
        columns = union.columns(n)
        probs = sum(
            weight * 10 ** model.log10_probs([place[column] for column in columns])
            for model, place, weight in zip(models, places, weights, strict=True)
        )
        with np.errstate(divide="ignore"):
            union.levels[-1] = Level(key, np.clip(np.log10(probs), -99.0, 0.0), np.zeros(len(key)))
    return renormalised(union)


def _keys(model: ArpaModel, columns: list[Ints]) -> Ints:
    """The keys of n-grams whose prefixes `model` has."""
    row = model.rows(columns[:-1]) if len(columns) > 1 else np.zeros(len(columns[0]), np.int64)
    return row * len(model.words) + columns[-1]


def tuned_weights(models: Sequence[ArpaModel], text: str | Path, unk: str, skip_first_field: bool) -> list[float]:
    """The weights with which the mixture makes `text` most probable, by EM; words that no model has are left out."""
    probs = np.stack([_text_probs(model, text, unk, skip_first_field) for model in models])
    probs = probs[:, probs.sum(axis=0) > 0]
    if not probs.size:
        raise KernelamError(f"no word of {text} is in a model")
    weights = np.full(len(models), 1 / len(models))
    for _ in range(MAX_STEPS):
        shares = weights[:, None] * probs
        before, weights = weights, (shares / shares.sum(axis=0)).mean(axis=1)
        if np.abs(weights - before).max() < TOLERANCE:
            break
    return [float(weight) for weight in weights]


def _text_probs(model: ArpaModel, text: str | Path, unk: str, skip_first_field: bool) -> Floats:
    tokens, _ = encoded(model, text, unk, skip_first_field)
    scores = log10_probs(model, tokens)
    known = (tokens >= 0) & (tokens != model.index[BOS]) & (tokens != model.index.get(unk, -1))
    return np.where(known, 10**scores, 0.0)
