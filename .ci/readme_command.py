"""Prints the command that the README gives under a marker: CI runs what people are told to run."""

import re
import sys
from pathlib import Path

readme, marker = sys.argv[1:]
pattern = rf"<!-- command: {re.escape(marker)} -->\s*```(?:sh|bash|console)\n(.*?)```"
found = re.findall(pattern, Path(readme).read_text(encoding="utf-8"), re.DOTALL)
if len(found) != 1:
    sys.exit(f"{readme} must have exactly one code block under `<!-- command: {marker} -->`, found {len(found)}")
print(found[0].strip())
