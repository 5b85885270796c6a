"""Kaldi's wer_details: per_utt, per_spk, ops, wer_bootci."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from kernelam.errors import KernelamError
from kernelam.scoring.alignment import ErrorCounts, align
from kernelam.scoring.bootstrap import Bootstrap
from kernelam.scoring.wer import Transcripts

EMPTY = "***"
Pairs = list[tuple[str, str]]
Align = Callable[[Sequence[str], Sequence[str]], list[tuple[str | None, str | None]]]

_NAMES = {"C": "correct", "D": "deletion", "I": "insertion", "S": "substitution"}


def details(
    refs: Transcripts, hyps: Transcripts, utt2spk: Mapping[str, str], boot: Bootstrap, align: Align = align
) -> dict[str, str]:
    """File name → text. A missing hypothesis appears as all deletions.

    The division of the errors is align-text's, as in Kaldi, and may differ from compute-wer's; the totals agree.
    """
    pairs = {utt: _pairs(utt, refs, hyps, align) for utt in sorted(refs)}
    return {
        "per_utt": "".join(_per_utt(utt, p) for utt, p in pairs.items()),
        "per_spk": _per_spk(pairs, utt2spk),
        "ops": _ops(pairs.values()),
        "wer_bootci": boot.kaldi_line + "\n",
    }


def _pairs(utt: str, refs: Transcripts, hyps: Transcripts, align: Align) -> Pairs:
    ref, hyp = refs[utt], hyps.get(utt, ())
    if EMPTY in ref or EMPTY in hyp:
        raise KernelamError(f"{utt} has the word {EMPTY}, which marks insertions and deletions: filter it out")
    return [(r or EMPTY, h or EMPTY) for r, h in align(ref, hyp)]


def _operation(ref: str, hyp: str) -> str:
    return "D" if hyp == EMPTY else "I" if ref == EMPTY else "S" if ref != hyp else "C"


def _centred(token: str, width: int) -> str:
    right = (width - len(token)) // 2
    return " " * (width - len(token) - right) + token + " " * right


def _per_utt(utt: str, pairs: Pairs) -> str:
    """Reference, hypothesis and operations in columns; numbers of correct, substituted, inserted, deleted words."""
    columns = [(r, h, _operation(r, h)) for r, h in pairs]
    rows = [[_centred(column[i], max(map(len, column))) for column in columns] for i in range(3)]
    counts = Counter(op for _, _, op in columns)
    lines = [f"{utt} {label:<5}" + "  ".join(row) for label, row in zip(("ref", "hyp", "op"), rows, strict=True)]
    return "\n".join([*lines, f"{utt} #csid {counts['C']} {counts['S']} {counts['I']} {counts['D']}"]) + "\n"


def _per_spk(pairs: Mapping[str, Pairs], utt2spk: Mapping[str, str]) -> str:
    """Two lines for a speaker, counts (raw) and percentages (sys), and the sum over all."""
    speakers: dict[str, list[ErrorCounts]] = {}
    for utt, aligned in pairs.items():
        if utt not in utt2spk:
            raise KernelamError(f"utterance {utt} has no speaker in the utt2spk of its data directory")
        ops = Counter(_operation(r, h) for r, h in aligned)
        counts = ErrorCounts(ops["I"], ops["D"], ops["S"], ops["C"] + ops["S"] + ops["D"])
        speakers.setdefault(utt2spk[utt], []).append(counts)
    width = max(15, *map(len, utt2spk.values()))
    titles = ("#SENT", "#WORD", "Corr", "Sub", "Ins", "Del", "Err", "S.Err")
    text = f"{'SPEAKER':<{width}} id  " + " ".join(f"{title:>10}" for title in titles) + "\n"
    for name, utterances in [
        *sorted(speakers.items(), key=lambda s: s[0]),
        ("SUM", [c for cs in speakers.values() for c in cs]),
    ]:
        text += _speaker_lines(f"{name:<{width}}", utterances)
    return text


def _speaker_lines(name: str, utterances: list[ErrorCounts]) -> str:
    c = sum(utterances, ErrorCounts())
    sentences, wrong = len(utterances), sum(u.errors > 0 for u in utterances)
    correct = c.ref_words - c.substitutions - c.deletions
    head = f"{sentences:10d} {c.ref_words:10d} "
    counts = [correct, c.substitutions, c.insertions, c.deletions, c.errors]
    text = f"{name} raw {head}" + " ".join(f"{n:10d}" for n in [*counts, wrong]) + "\n"
    if c.ref_words:
        rates = [100 * n / c.ref_words for n in counts] + [100 * wrong / sentences]
        text += f"{name} sys {head}" + " ".join(f"{rate:10.2f}" for rate in rates) + "\n"
    return text


def _ops(utterances: Iterable[Pairs]) -> str:
    """How often each word was right, deleted, inserted, or taken for another: by kind, the frequent first."""
    counts = Counter(pair for pairs in utterances for pair in pairs)
    if not counts:
        return ""
    width = min(16, max(len(token) for pair in counts for token in pair))
    digits = len(str(max(counts.values())))
    rows = sorted((_NAMES[_operation(r, h)], -count, r, h) for (r, h), count in counts.items())
    return "".join(f"{op:<14}{r:>{width}}    {h:>{width}}    {-n:>{digits}}\n" for op, n, r, h in rows)
