"""Where recorded cases are: the copy in this repository, and another directory of the same form if one is named."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

DATA = Path(__file__).parent / "data"


def case_directories() -> list[Path]:
    """The repository's cases, then those of the directory in ``QUIESCE_CASES``."""
    other = os.environ.get("QUIESCE_CASES")
    return [DATA, Path(other)] if other else [DATA]


def load_cases(relative: str) -> list[dict[str, Any]]:
    """The cases of one file from every directory that has it; a missing file is skipped."""
    found: list[dict[str, Any]] = []
    for directory in case_directories():
        path = directory / relative
        if path.exists():
            found += json.loads(path.read_text(encoding="utf-8"))
    return found


def load_scenarios() -> list[dict[str, Any]]:
    """Every recorded scenario, a line each, from every directory."""
    paths = [path for directory in case_directories() for path in sorted(directory.glob("scenarios/*.jsonl"))]
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines() if line]


def revive(value: Any) -> Any:
    """A value of the static files with its ``$special`` parts made real."""
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [revive(item) for item in items]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    special: str | None = members.get("$special")
    if special is None:
        return {key: revive(item) for key, item in members.items()}
    if special == "foreign":
        return object()
    return float(
        {"nan": "nan", "inf": "inf", "-inf": "-inf", "-0": "-0.0"}.get(special, special.removeprefix("float:"))
    )


def has_inexact_integer(value: Any) -> bool:
    """Whether a case holds an integer that a double cannot: the design's number policy differs there."""
    if isinstance(value, list):
        items = cast("list[object]", value)
        return any(map(has_inexact_integer, items))
    if isinstance(value, dict):
        return any(map(has_inexact_integer, cast("dict[str, Any]", value).values()))
    try:
        return type(value) is int and int(float(value)) != value
    except OverflowError:
        return True
