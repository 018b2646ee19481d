"""Apply each mutant of ``mutants.toml`` to a copy, and see the suite go red.

``python tests/mutants/mutants.py [WORD...]``

Prints a table with what killed each. Ends with 1 if one survived or did not apply, or if the tests fail without a
mutant. With words, only mutants whose name holds one of them are run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutants.toml")
WHOLE = ("tests/schedule", "tests/promises", "tests/cases", "tests/registry", "tests/testing")
SECONDS = 240
"""For one run of pytest; a mutant that makes it take longer is killed by that."""
HANGING = 45
"""Seconds after which a test counts as hanging: far more than any takes."""


@attrs.frozen
class Mutant:
    """One change of one line or two.

    Attributes:
        name: What is broken, in words.
        promise: The promise that it breaks.
        file: Where, from the root of the repository.
        before: The text that is replaced; it occurs once.
        after: What takes its place.
        tests: The tests that should notice.
    """

    name: str
    promise: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...] = attrs.field(converter=tuple)

    def applied(self, text: str) -> str:
        """The text of the file with the mutant in it.

        Raises:
            ValueError: The text to replace does not occur exactly once.
        """
        if text.count(self.before) != 1:
            msg = f"mutant {self.name!r}: {self.file} has its text {text.count(self.before)} times, not once"
            raise ValueError(msg)
        return text.replace(self.before, self.after)


@attrs.frozen
class Verdict:
    """What became of a mutant.

    Attributes:
        mutant: Which.
        killer: The first test that failed, or how else it was noticed; ``None`` if it survived.
        seconds: How long that took.
    """

    mutant: Mutant
    killer: str | None
    seconds: float


def mutants() -> list[Mutant]:
    """All mutants, in the order of the list."""
    data = tomllib.loads(LIST.read_text(encoding="utf-8"))
    return [Mutant(**entry) for entry in data["mutant"]]


def copied(folder: Path) -> None:
    """Copy what the tests need; ``quiesce`` is importable from the copy."""
    for name in ("src", "tests", "docs", "examples", "README.md", "pyproject.toml"):
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    (folder / "quiesce").symlink_to("src")


def killer_of(folder: Path, tests: Sequence[str]) -> str | None:
    """Run tests in a copy; what failed first, or ``None``."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-o", f"faulthandler_timeout={HANGING}"]
    # The scenarios under 20 seeds each take too long, and say no more here than those under one.
    environment = os.environ | {"PYTHONPATH": str(folder), "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / ".hypothesis")}
    try:
        done = subprocess.run(
            [*command, "-k", "not whatever", *tests],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not over after {SECONDS} s"
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed[1] if failed else "a test that hangs" if "Timeout" in done.stderr + done.stdout else "pytest itself"


def judge(mutant: Mutant | None, tests: Sequence[str]) -> str | None:
    """Which of these tests notices a mutant; with ``None``, which fails without one."""
    with tempfile.TemporaryDirectory(prefix="quiesce-mutant-") as name:
        folder = Path(name)
        copied(folder)
        if mutant is not None:
            path = folder / mutant.file
            path.write_text(mutant.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
        return killer_of(folder, tests)


def main(words: Sequence[str]) -> int:
    """Run them, two at a time, and print the table."""
    chosen = [mutant for mutant in mutants() if not words or any(word in mutant.name for word in words)]
    broken = judge(None, sorted({test for mutant in chosen for test in mutant.tests}))
    if broken is not None:
        print(f"the tests fail without any mutant: {broken}")
        return 1

    def timed(mutant: Mutant) -> Verdict:
        began = time.monotonic()
        killer = judge(mutant, mutant.tests) or judge(mutant, WHOLE)
        return Verdict(mutant, killer, time.monotonic() - began)

    print("| promise | mutant | killed by | s |\n|---|---|---|---|")
    survivors = 0
    with ThreadPoolExecutor(2) as pool:
        for verdict in pool.map(timed, chosen):
            survivors += verdict.killer is None
            killer = "**survived**" if verdict.killer is None else f"`{verdict.killer}`"
            mutant = verdict.mutant
            print(f"| {mutant.promise} | {mutant.name} | {killer} | {verdict.seconds:.0f} |", flush=True)
    print(f"\n{len(chosen) - survivors} of {len(chosen)} mutants killed")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
