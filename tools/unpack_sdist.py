"""Writes the sdist of this checkout and unpacks it: python tools/unpack_sdist.py DIST FOLDER.

Files of FOLDER that already have their content keep their time, so that only what changed is compiled again.
"""

import os
import sys
import tarfile
from pathlib import Path

from scikit_build_core.build import build_sdist


def write_sdist(folder: Path) -> Path:
    os.chdir(Path(__file__).resolve().parent.parent)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / build_sdist(str(folder))


def unpack(archive: Path, folder: Path) -> None:
    kept = set()
    with tarfile.open(archive) as sources:
        for member in filter(tarfile.TarInfo.isfile, sources):
            path = folder.joinpath(*Path(member.name).parts[1:])  # below NAME-VERSION/
            kept.add(path)
            content = sources.extractfile(member).read()
            if path.is_file() and path.read_bytes() == content:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(member.mode)
    for path in folder.rglob("*"):
        if path.is_file() and path not in kept:
            path.unlink()


def main() -> None:
    dist, folder = (Path(argument).resolve() for argument in sys.argv[1:])
    archive = write_sdist(dist)
    unpack(archive, folder)
    print(f"{archive.name}, {archive.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
