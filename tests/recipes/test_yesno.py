"""Sixty recordings of eight words, each yes or no in Hebrew, from sound: words and pauses alternate, and nothing but
where a recording begins and ends tells which is which."""

import json
from pathlib import Path

STEPS = """
mkdir conf
printf -- '--use-energy=false\\n--sample-frequency=8000\\n' > conf/mfcc.conf
for x in train test; do
    $k/steps/make_mfcc.sh --nj 1 data/$x
    $k/steps/compute_cmvn_stats.sh data/$x
done
$k/utils/prepare_lang.sh --position-dependent-phones false data/local/dict '<SIL>' data/local/lang data/lang
kernelam lm estimate --order 1 data/train/text data/lm.arpa
$k/utils/format_lm.sh data/lang data/lm.arpa data/lang_test
$k/steps/train_mono.sh --nj 1 --totgauss 400 data/train data/lang exp/mono
$k/utils/mkgraph.sh data/lang_test exp/mono exp/mono/graph
$k/steps/decode.sh --nj 1 exp/mono/graph data/train exp/mono/decode_train
$k/steps/decode.sh --nj 1 --tuned-on exp/mono/decode_train exp/mono/graph data/test exp/mono/decode_test
"""
DICTIONARY = {
    "lexicon.txt": "<SIL> SIL\nYES Y\nNO N\n",
    "silence_phones.txt": "SIL\n",
    "optional_silence.txt": "SIL\n",
    "nonsilence_phones.txt": "Y\nN\n",
}


def write_data(folder: Path, recordings: list[Path]) -> None:
    """A speaker, and words as the names of the files tell them: 0 is no, 1 is yes."""
    names = [path.stem for path in recordings]
    folder.mkdir(parents=True)
    tables = {
        "wav.scp": [f"{path.stem} {path}" for path in recordings],
        "text": [" ".join([name, *(("NO", "YES")[int(bit)] for bit in name.split("_"))]) for name in names],
        "utt2spk": [f"{name} global" for name in names],
        "spk2utt": [" ".join(["global", *names])],
    }
    for name, rows in tables.items():
        (folder / name).write_text("\n".join(rows) + "\n")


def test_words_are_told_from_pauses_in_the_half_that_was_not_trained_on(corpora, shell, tmp_path):
    recordings = sorted((corpora / "yesno").glob("?_?_?_?_?_?_?_?.wav"))
    write_data(tmp_path / "data/train", recordings[:30])
    write_data(tmp_path / "data/test", recordings[30:])
    (tmp_path / "data/local/dict").mkdir(parents=True)
    for name, text in DICTIONARY.items():
        (tmp_path / "data/local/dict" / name).write_text(text)
    done = shell(STEPS, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "exp/mono/decode_test/scoring_kaldi/result.json").read_text())
    assert found["ref_words"] == 240
    assert found["rate"] < 0.01  # 1_1_1_1_0_1_0_0.wav begins with the end of a word that it does not have
