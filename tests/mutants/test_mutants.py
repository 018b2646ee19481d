"""The list of mutants is in step with the code. Whether they are killed is what ``run.py`` finds out."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = mutants()


def test_there_are_at_least_25_and_every_promise_has_one() -> None:
    """Each of the eight promises is broken by one mutant or more."""
    assert len(MUTANTS) >= 25
    assert {mutant.promise for mutant in MUTANTS} >= set("12345678")
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_mutant_applies_and_is_python(mutant: Mutant) -> None:
    """Its text occurs once in its file, the tests it names exist, and what it makes compiles."""
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    changed = mutant.applied(text)
    assert changed != text
    compile(changed, mutant.file, "exec")
    assert all((ROOT / test).exists() for test in mutant.tests)


def test_a_mutant_that_no_longer_applies_is_an_error() -> None:
    """One that changes nothing would seem to survive, or to be killed by chance."""
    mutant = Mutant("n", "1", "f", "before", "after", ())
    with pytest.raises(ValueError, match="2 times, not once"):
        mutant.applied("before before")
