"""Examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import quiesce

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(quiesce.__path__, "quiesce.")
    # Importing __main__ would run the command line.
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", ["quiesce", *MODULES])
def test_the_examples_in_docstrings_print_what_they_say(name: str) -> None:
    """Every module can be imported by itself, and its doctests pass."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0
