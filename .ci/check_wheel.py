"""Fails unless a wheel holds every module and data file of src/ under quiesce/, and nothing else at the top."""

import sys
import zipfile
from pathlib import Path

names = set(zipfile.ZipFile(sys.argv[1]).namelist())
tops = {name.split("/")[0] for name in names}
strange = {top for top in tops if top != "quiesce" and not top.endswith(".dist-info")}
wanted = {
    "quiesce/" + path.relative_to("src").as_posix()
    for path in Path("src").rglob("*")
    if path.is_file() and "__pycache__" not in path.parts and not any(p.endswith(".egg-info") for p in path.parts)
}
missing = sorted(wanted - names)
if strange or missing:
    sys.exit(f"wheel: unexpected at the top: {sorted(strange)}; missing: {missing}")
print(f"wheel: {len(names)} files, top level {sorted(tops)}")
