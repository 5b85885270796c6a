"""kernelam validate: is it what it should be? Flags without a value, as those of Kaldi's validate_data_dir.sh."""

from pathlib import Path

import click

from kernelam.errors import KernelamError
from kernelam.progress import say


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--no-feats", is_flag=True, help="feats.scp may be missing.")
@click.option("--no-text", is_flag=True, help="text may be missing.")
@click.option("--no-wav", is_flag=True, help="wav.scp may be missing.")
@click.option("--no-spk-sort", is_flag=True, help="utt2spk need not be sorted by speaker.")
@click.option("--data", help="Of an archive: the data directory whose frames it must have.")
@click.option("--graph", help="Of an archive: the graph directory whose pdfs it must have.")
@click.option("--counts", help="Of an archive: ali_train_pdf.counts; was the prior subtracted, once?")
@click.argument("targets", metavar="DATA_DIR|ARK|SCP…", nargs=-1, required=True)
def command(
    targets: tuple[str, ...],
    no_feats: bool,
    no_text: bool,
    no_wav: bool,
    no_spk_sort: bool,
    data: str | None,
    graph: str | None,
    counts: str | None,
) -> None:
    """Check data directories, or archives of log-likelihoods for a decoder; status 1 if anything is wrong.

    An archive is an ark file, an scp file that lists one, or ark:- for standard input. Of several, each job's for
    instance, all utterances together must be those of --data.
    """
    for target in targets:
        name = target.removeprefix("ark:").removeprefix("scp:")
        if name != "-" and not Path(name).exists():
            raise KernelamError(f"no such data directory or archive {target}")
    if Path(targets[0]).is_dir():
        if data or graph or counts:
            raise KernelamError(f"{targets[0]} is a directory; --data, --graph and --counts are for archives")
        for target in targets:
            _data_dir(target, feats=not no_feats, text=not no_text, wav=not no_wav, spk_sort=not no_spk_sort)
    else:
        if no_feats or no_text or no_wav or no_spk_sort:
            raise KernelamError(f"{targets[0]} is no directory; --no-feats and the like are for data directories")
        _archives(targets, data, graph, counts)


def _data_dir(path: str, **required: bool) -> None:
    from kernelam.kaldi.datadir import DataDir

    data = DataDir(path)
    data.validate(**required)
    if len(data.spks) == 1:
        say(f"{path}: warning: only one speaker, so what is estimated by speaker is shared by all utterances")
    say(f"{path}: valid, {len(data.utts)} utterances of {len(data.spks)} speakers")


def _archives(targets: tuple[str, ...], data: str | None, graph: str | None, counts: str | None) -> None:
    from kernelam.decoding.lint import Lint
    from kernelam.hmm.graph import graph_pdfs
    from kernelam.kaldi.ark import MatrixScp, read_ark
    from kernelam.kaldi.counts import read_counts
    from kernelam.models.base import log_priors

    lint = Lint(
        ", ".join(targets),
        num_pdfs=graph_pdfs(Path(graph)) if graph else None,
        log_priors=log_priors(read_counts(counts)) if counts else None,
    )
    if data:
        features = MatrixScp(Path(data) / "feats.scp")
        lint.frames = {utt: features.num_frames(utt) for utt in features}
    for target in targets:
        is_scp = target.startswith("scp:") or target.endswith(".scp")
        lint.look(MatrixScp(target.removeprefix("scp:")).items() if is_scp else read_ark(target))
    if problems := lint.problems:
        for sentence in problems[:-1]:
            say(f"kernelam: {sentence}")
        raise KernelamError(problems[-1])
    say(lint.summary)
