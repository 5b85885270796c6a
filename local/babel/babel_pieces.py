"""An open vocabulary: words as sentencepiece units, of which any word can be put together."""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from babel_transcripts import NOT_WORDS

from kernelam.errors import KernelamError
from kernelam.files import replacing

BEGIN = "▁"  # of a word


class Pieces:
    """Units of words; the first of a word begins with ▁. Marks such as <hes> stay as they are."""

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        self.model = model
        self._units = sentencepiece.SentencePieceProcessor(model_proto=model)

    @classmethod
    def trained(cls, transcripts: Iterable[list[str]], count: int) -> "Pieces":
        """At most `count` units, those under which the transcripts are most probable."""
        try:
            import sentencepiece
        except ImportError:
            raise KernelamError("--pieces needs the package sentencepiece: pip install sentencepiece==0.2.3") from None
        model = io.BytesIO()
        texts = (" ".join(word for word in words if word not in NOT_WORDS) for words in transcripts)
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(text for text in texts if text),
                model_writer=model,
                vocab_size=count,
                hard_vocab_limit=False,
                character_coverage=1.0,
                normalization_rule_name="identity",
                num_threads=1,
                minloglevel=2,
            )
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1].rpartition("] ")[2]
            raise KernelamError(
                f"sentencepiece cannot make {count} units of the training transcripts: {reason}"
            ) from None
        return cls(model.getvalue())

    @property
    def units(self) -> set[str]:
        """Every character is one, at the beginning of a word and within it."""
        found = {self._units.id_to_piece(one) for one in range(self._units.get_piece_size())}
        found -= {"<unk>", "<s>", "</s>", BEGIN}
        return found | {BEGIN + unit for unit in found if len(unit) == 1}

    def split(self, words: Iterable[str]) -> Iterator[str]:
        for word in words:
            pieces = [word] if word in NOT_WORDS else self._units.encode(word, out_type=str)
            if pieces[0] == BEGIN:  # no sound of its own
                pieces[:2] = ["".join(pieces[:2])]
            yield from pieces

    def save(self, path: Path) -> None:
        with replacing(path) as stream:
            stream.write(self.model)
