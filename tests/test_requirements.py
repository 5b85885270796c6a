from pathlib import Path

import pytest

from kernelam.requirements import ROOT, installed, name_of, read_requirements, required, satisfies, unmet


@pytest.mark.parametrize(
    ("version", "requirement", "holds"),
    [
        ("2.13.0", "torch==2.13.0", True),
        ("2.13.0+cu126", "torch==2.13.0", True),
        ("2.13", "torch==2.13.0", True),
        ("2.13.1", "torch==2.13.0", False),
        ("2.9.0", "torch>=2.13", False),
        ("1.8.10", "kaldifst>=1.8.3,<1.9", True),
        ("1.8.2", "kaldifst>=1.8.3,<1.9", False),
        ("1.9.0", "kaldifst>=1.8.3,<1.9", False),
        ("0.1", "anything", True),
    ],
)
def test_versions(version: str, requirement: str, holds: bool) -> None:
    assert satisfies(version, requirement) is holds


def test_unmet() -> None:
    have = installed("pytest")
    assert unmet(["pytest>=8", "pytest>=99", "no-such-package==1"]) == [
        f"pytest>=99 (has {have})",
        "no-such-package==1",
    ]


def test_comments_are_no_requirements(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("# a list\n\nclick==8.1  # why\n")
    assert read_requirements(tmp_path / "requirements.txt") == ["click==8.1"]


def test_pins_are_within_the_ranges() -> None:
    """requirements.txt pins everything that pyproject.toml asks for, to a version it accepts."""
    pins = dict(line.split("==") for line in read_requirements(ROOT / "requirements.txt"))
    for requirement in required():
        assert satisfies(pins[name_of(requirement)], requirement)
