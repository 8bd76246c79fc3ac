"""Disks that fill up, as only a disk of one's own may."""

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

import pytest


@contextmanager
def small_disk(parent: Path, size: int) -> Iterator[Path]:
    """One of `size` bytes, mounted beneath `parent`. Who may not mount skips the test, but CI fails."""
    folder = parent / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        assert not os.environ.get("CI"), f"CI has to mount a small disk, or nobody tests full ones: {done.stderr}"
        pytest.skip("SKIPPED: mounting a small disk takes root; full and read-only disks are not tested here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
