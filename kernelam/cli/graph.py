"""kernelam graph: lang directories and decoding graphs."""

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
def command() -> None:
    """Lang directories and decoding graphs."""


@command.command()
@click.option("--position-dependent-phones", type=bool, default=True, help="Mark phones by their place in the word.")
@click.option("--sil-prob", type=float, default=0.5, help="Probability of silence between words; 0 for none.")
@click.option("--num-sil-states", type=int, default=5, help="HMM states of silence phones.")
@click.option("--num-nonsil-states", type=int, default=3, help="HMM states of the other phones.")
@click.option("--share-silence-phones", type=bool, default=False, help="All silence phones share their pdfs.")
@click.argument("dict_dir")
@click.argument("oov_word")
@click.argument("lang_dir")
def lang(
    position_dependent_phones: bool,
    sil_prob: float,
    num_sil_states: int,
    num_nonsil_states: int,
    share_silence_phones: bool,
    dict_dir: str,
    oov_word: str,
    lang_dir: str,
) -> None:
    """Make LANG_DIR from DICT_DIR; OOV_WORD stands for unknown words."""
    from kernelam.hmm.lang import prepare_lang

    prepare_lang(
        dict_dir,
        oov_word,
        lang_dir,
        position_dependent_phones=position_dependent_phones,
        sil_prob=sil_prob,
        num_sil_states=num_sil_states,
        num_nonsil_states=num_nonsil_states,
        share_silence_phones=share_silence_phones,
    )


@command.command()
@click.option("--self-loop-scale", type=float, default=0.1, help="Scale of the log-probabilities of self-loops.")
@click.option("--transition-scale", type=float, default=1.0, help="Scale of those of the other transitions.")
@click.argument("lang_dir")
@click.argument("model_dir")
@click.argument("graph_dir")
def hclg(self_loop_scale: float, transition_scale: float, lang_dir: str, model_dir: str, graph_dir: str) -> None:
    """Compose LANG_DIR (with G.fst) with the tree and final.mdl of MODEL_DIR to GRAPH_DIR/HCLG.fst."""
    from pathlib import Path

    from kernelam.hmm.graph import make_hclg
    from kernelam.hmm.lang import check_phones
    from kernelam.hmm.transitions import TransitionModel, check_tree
    from kernelam.hmm.tree import ContextTree

    model = Path(model_dir)
    check_phones(Path(lang_dir) / "phones.txt", model / "phones.txt")
    tree, transitions = ContextTree.load(model / "tree"), TransitionModel.load(model / "final.mdl")
    check_tree(tree, transitions, f"{model}: ")
    make_hclg(lang_dir, tree, transitions, graph_dir, transition_scale, self_loop_scale)
