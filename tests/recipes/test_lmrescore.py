"""steps/lmrescore.sh, against decoding with the larger language model."""

import shutil
from pathlib import Path

from kernelam.kaldi.tables import read_table


def test_a_rescored_lattice_is_that_of_decoding_with_the_larger_model(corpora: Path, tmp_path: Path, shell) -> None:
    """Phones of the TIMIT sample: decoded without n-grams, the bigram put in, against decoding with the bigram."""
    sample = corpora / "kaldi-timit-sample"
    shutil.copytree(sample / "data/lang", tmp_path / "lang_one")
    shutil.copytree(sample / "data/lang_test_bg", tmp_path / "lang_two")
    shutil.copytree(sample / "exp/mono", tmp_path / "mono", ignore=shutil.ignore_patterns("decode*", "graph"))
    for folder in ("lang_one", "lang_two", "mono"):
        shell(f"chmod -R u+w {folder}", tmp_path)
    done = shell(
        f"""
        kernelam lm estimate --order 1 {sample}/data/train/text one.arpa
        kernelam lm fst one.arpa lang_one/words.txt lang_one/G.fst
        $k/utils/import_data_dir.sh {sample} {sample}/data/test data
        $k/utils/subset_data_dir.sh data 4 few
        for x in one two; do
            $k/utils/mkgraph.sh lang_$x mono graph_$x
            $k/steps/decode.sh --nj 1 --beam 18 --lattice-beam 14 --max-active 20000 --skip-scoring true \\
                graph_$x few mono/decode_$x
        done
        $k/steps/lmrescore.sh --skip-scoring true lang_one lang_two few mono/decode_one mono/decode_new
        for x in two new; do
            kernelam lattice best --words lang_two/words.txt mono/decode_$x/lat.1.gz --output $x.txt
        done
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found, expected = read_table(tmp_path / "new.txt"), read_table(tmp_path / "two.txt")
    assert len(expected) == 4
    assert found == expected
    (tmp_path / "lang_two/words.txt").write_text((tmp_path / "lang_two/words.txt").read_text().replace("aa ", "AA "))
    done = shell("$k/steps/lmrescore.sh lang_one lang_two few mono/decode_one mono/decode_new", tmp_path)
    assert done.returncode != 0
    assert "differ in AA" in done.stderr
    assert (tmp_path / "mono/decode_new/lat.1.gz").exists()
