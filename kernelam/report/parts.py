"""What a model was made of: members of a combination, blocks of a kernel model, the model whose features it has."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from kernelam.models.description import describe, fingerprint

Model = tuple[Path, dict[str, Any]]
"""A directory and the contents of its model.json."""


def there(place: Path, beside: Path) -> list[Path]:
    """The model directories that `place` may mean: itself, and, where it is relative to another directory than ours,
    that beside `beside`."""
    return [folder for folder in (place, beside.parent / place.name) if (folder / "model.json").exists()]


def look(place: Path, beside: Path, digest: str | None) -> Model | None:
    """The model that is `there` of this fingerprint, or whose arrays have this digest; none where that is not told."""
    for folder in there(place, beside) if digest else ():
        about = describe(folder)
        if digest in (fingerprint(about), about.get("files", {}).get("model.safetensors")):
            return folder, about
    return None


def members(folder: Path, about: dict[str, Any]) -> list[Model] | None:
    """Those of a combination, also of lattices, or the blocks of a kernel model, as they were when they were put
    together; none of other models; None where one is gone."""
    digests = [files["model.safetensors"] for files in about.get("training", {}).get("members", [])]
    if about.get("kind") == "lattices":
        digests = [member["model"] for member in about["members"]]
    told = [Path(member["folder"]) for member in about.get("members", [])]
    places = told or [folder / f"block.{number}" for number in range(1, len(digests) + 1)]
    found = [look(place, folder, digest) for place, digest in zip(places, digests, strict=True)]
    return None if None in found else [model for model in found if model]


def identity(folder: Path, about: dict[str, Any], results: Any = None) -> tuple[str, list[Any]]:
    """What a model is but for seeds, and these: its own and those of the models that it was made of.

    Where these are gone, or settings are not told, the model is one of its own, as all that is told of it.
    """
    training = about.get("training", {})
    own = hashlib.sha256(json.dumps([about, results], sort_keys=True).encode()).hexdigest()
    alone = f"{folder.name} {own}", [about.get("seed")]
    if "settings" in training:
        settings, seeds = _settings(folder, training["settings"])
        options = {name: value for name, value in training["options"].items() if name != "seed"}
        key = json.dumps([about["kind"], settings, options, training["data"]], sort_keys=True)
        return key, [about.get("seed"), *seeds]
    parts = members(folder, about)
    if not parts:
        return alone
    keys, seeds = zip(*(identity(*part) for part in parts), strict=True)
    return json.dumps([about["kind"], training.get("weights"), keys]), list(seeds)


def _settings(folder: Path, settings: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """With what they are in place of the models whose features or posteriors are taken, and the seeds of these."""
    named = re.compile(r"posteriors:([^\s()]+)")
    donor, kernel = settings.get("features_of", ""), settings.get("kernel", "")
    places, fingerprints = [donor] if donor else named.findall(kernel), settings.get("models", [])
    both = zip(places, fingerprints, strict=True)
    found = {place: look(Path(place), folder, digest) for place, digest in both}
    known = {place: identity(*model) for place, model in found.items() if model}
    if not known or len(known) < len(found):
        return settings, []
    told = {"features_of": known[donor][0]} if donor else {"kernel": named.sub(lambda m: known[m[1]][0], kernel)}
    return {**settings, **told, "models": []}, [known[place][1] for place in places]


def cost(folder: Path, about: dict[str, Any]) -> dict[str, Any] | None:
    """What training tells of itself; of a model made of others, the sum with theirs, the largest memory and number of
    frames. None where these are gone."""
    training: dict[str, Any] = about["training"]
    if "members" not in training:
        return training
    parts = members(folder, about)
    costs = [cost(*part) for part in parts] if parts else [None]
    known = [one for one in costs if one is not None]
    if len(known) < len(costs):
        return None
    total: dict[str, Any] = {"seconds": training["seconds"] + sum(one["seconds"] for one in known)}
    for name, together in (("frames", max), ("flops", sum), ("memory", max), ("configurations", sum)):
        if all(name in one for one in known):
            total[name] = together(one[name] for one in known)
    if len(sizes := {one.get("search_frames") for one in known}) == 1:
        total["search_frames"] = sizes.pop()
    return total
