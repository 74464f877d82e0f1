"""Makes an environment that has the packages of some extras and no others, with links to those that are installed.

    python .ci/subset.py FOLDER EXTRA...

So a check can run where the other extras are missing, without another installation. It links what this environment has
of jmsaio, of the extras, and of all that these require.
"""

from __future__ import annotations

import sys
import sysconfig
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def required(wanted: Iterable[str]) -> dict[str, Distribution]:
    """Return the installed distributions that requirements name, and all that these require, by their normalized names.

    Raises:
        PackageNotFoundError: one is not installed.
    """
    found: dict[str, Distribution] = {}
    waiting, done = [Requirement(each) for each in wanted], set[tuple[str, str]]()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        found[name] = distribution(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) not in done:
                done.add((name, extra))
                waiting += [each for each in _requirements(found[name]) if _applies(each, extra)]
    return found


def _requirements(of: Distribution) -> list[Requirement]:
    return [Requirement(each) for each in of.requires or ()]


def _applies(requirement: Requirement, extra: str) -> bool:
    """Whether a distribution has this requirement with an extra, or, where that is empty, without one."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def top_level(of: Distribution) -> set[Path]:
    """Return the files and folders that a distribution has where packages are installed."""
    names = {path.parts[0] for path in of.files or ()} - {"..", "__pycache__"}
    return {Path(str(of.locate_file(name))) for name in names}


def main(arguments: list[str]) -> None:
    """Make the environment."""
    folder, *extras = arguments
    venv.create(folder, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": folder}))
    for one in required([f"jmsaio[{','.join(extras)}]"]).values():
        for path in top_level(one):
            if not (packages / path.name).exists():  # several distributions may share a folder
                (packages / path.name).symlink_to(path)


if __name__ == "__main__":
    main(sys.argv[1:])
