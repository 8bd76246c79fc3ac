"""Uploads: what a media child does beside vipsthumbnail and pdftotext, and what it takes at most."""

import json
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Callable

from media_child import Child
from media_files import curricula, everything, long_document, pictures
from measure import Load
from stand import Row, Stand

PROCESSES = min(2, os.cpu_count() or 1)  # Children, and programs of the other side at work at once.
PICTURES = 120  # Of one round, each file several times.
CVS = 200
LONG = 20  # Readings of one long document, so many that the children's start counts for nothing.
QUALITY = 80
PEAK_MEGABYTES_MAX = 256


def cpu_of_children() -> float:
    """Of those that have ended and were waited for."""
    usage = os.times()
    return usage.children_user + usage.children_system


class MediaRows:
    def __init__(self, stand: Stand):
        self.stand = stand
        self.folder = stand.folder / "media"

    def clean(self) -> Path:
        """A folder of its own for each measure; the children may write there."""
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "out").mkdir(parents=True)
        return self.folder

    # Each side gives its processes one file after the other.

    def ours(self, files: list[Path], kind: str) -> Load:
        """Files through as many children as there are processes; each must be answered by `kind`."""
        work: SimpleQueue[tuple[int, Path]] = SimpleQueue()
        for each in enumerate(files):
            work.put(each)
        roots = sorted({self.folder, *(path.parent for path in files)})
        children = [Child(roots) for _ in range(PROCESSES)]

        def serve(child: Child) -> None:
            while True:
                try:
                    number, path = work.get_nowait()
                except Empty:
                    return
                answer = child.ask(path, self.folder / f"out/{number}")
                if kind not in answer:
                    raise SystemExit(f"{path}: the child says {str(answer)[:200]}")

        begun = time.monotonic()
        with ThreadPoolExecutor(PROCESSES) as pool:
            list(pool.map(serve, children))
        seconds = time.monotonic() - begun
        for child in children:
            child.end()
        cpu = sum(child.cpu_seconds for child in children)
        shutil.rmtree(self.folder / "out")
        return Load(len(files), len(files) / seconds, 0, 0, cpu * 1e6 / len(files))

    def theirs(self, files: int, commands: list[list[str]]) -> Load:
        """Programs, as many at once as we have children."""
        (self.folder / "out").mkdir(exist_ok=True)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        environment = {**os.environ, "VIPS_CONCURRENCY": "1"}

        def run(command: list[str]) -> None:
            subprocess.run(command, check=True, env=environment, cwd=self.folder / "out", **quiet)

        before, begun = cpu_of_children(), time.monotonic()
        with ThreadPoolExecutor(PROCESSES) as pool:
            list(pool.map(run, commands))
        seconds, cpu = time.monotonic() - begun, cpu_of_children() - before
        shutil.rmtree(self.folder / "out")
        return Load(files, files / seconds, 0, 0, cpu * 1e6 / files)

    def compare(self, what: str, unit: str, ours: Callable[[], Load], theirs: Callable[[], Load], name: str,
                target: float, scale: float = 1) -> None:
        mine, other = self.stand.in_turns(ours, theirs)
        self.stand.rows.append(
            Row(what, f"{mine.per_second * scale:,.0f} {unit}", f"{name} {other.per_second * scale:,.0f} {unit}",
                mine.per_second / other.per_second, target, False)
        )
        self.stand.notes.append(
            f"{what}: {mine.cpu_microseconds / 1000 / scale:.1f} ms of CPU each, {name} "
            f"{other.cpu_microseconds / 1000 / scale:.1f} ms: {other.cpu_microseconds / mine.cpu_microseconds:.2f} of "
            f"its throughput on cores that do nothing else; {PROCESSES} processes on either side, all started anew in "
            f"each of the rounds"
        )

    def variants(self) -> None:
        """Each picture upright in its own size and in Strapi's smaller ones, in the same formats on both sides."""
        folder = self.clean()
        wanted: dict[tuple[str, str], list[Path]] = {}
        files = []
        child = Child(sorted({folder, *(path.parent for path in pictures(folder))}))
        for number, path in enumerate(pictures(folder)):
            answer = child.ask(path, folder / f"first/{number}").get("image")
            image: dict[str, Any] = answer["_0"] if answer else {}
            if image.get("variants"):
                files.append(path)
                for made in [image["original"], *image["variants"]]:
                    wanted.setdefault((box(made["name"]), made["type"]), []).append(path)
        child.end()
        times = max(1, PICTURES // len(files))
        commands = []
        for (size, kind), paths in sorted(wanted.items()):
            many = paths * times
            ending = {"jpeg": f"jpg[Q={QUALITY},strip]", "png": "png[strip]", "webp": f"webp[Q={QUALITY},strip]"}[kind]
            # Half of the files for each process, so that neither waits for the other at the end.
            for half in range(PROCESSES):
                part = [str(path) for path in many[half::PROCESSES]]
                if part:
                    output = f"{folder}/out/%s_{len(commands)}.{ending}"
                    commands.append(["vipsthumbnail", "--size", size, "-o", output, *part])
        self.compare(
            "pictures and their variants", "files/s", lambda: self.ours(files * times, "image"),
            lambda: self.theirs(len(files) * times, commands), "vipsthumbnail", 0.9,
        )
        self.stand.notes.append(
            f"VIPS_CONCURRENCY=1 vipsthumbnail --size '245x156>' (and '500x500>', '750x750>', '1000x1000>', and "
            f"'20000x20000>' for the size it has) -o '%s.jpg[Q={QUALITY},strip]' for {len(files)} files, {times} "
            "times; each size of many files by one call"
        )

    def documents(self) -> None:
        """The text of CVs, and of a document so long that starting a program for it counts for nothing."""
        folder = self.clean()
        cvs = curricula(folder)
        many = (cvs * (CVS // len(cvs) + 1))[:CVS]
        self.compare(
            "text of CVs (PDF)", "files/s", lambda: self.ours(many, "document"),
            lambda: self.theirs(CVS, [["pdftotext", str(path), "-"] for path in many]), "pdftotext", 0.8,
        )
        long = long_document(folder)
        pages = int(pdfinfo(long)["Pages"])
        self.compare(
            "text of a long PDF", "pages/s", lambda: self.ours([long] * LONG, "document"),
            lambda: self.theirs(LONG, [["pdftotext", str(long), "-"]] * LONG), "pdftotext", 0.8, pages,
        )

    def child_memory(self) -> None:
        """All files there are, and bombs, through one child after the other."""
        folder = self.clean()
        files = everything(folder)
        child, worst, peak = Child(sorted({folder, *(path.parent for path in files)})), "", 0.0
        outcomes: dict[str, int] = {}
        for number, path in enumerate(files):
            answer = child.ask(path, folder / f"out/{number}")
            kind = "rejected: " + answer["rejected"]["_0"] if "rejected" in answer else next(iter(answer))
            outcomes[kind] = outcomes.get(kind, 0) + 1
            status = Path(f"/proc/{child.child.pid}/status").read_text()
            now = max(child.peak_megabytes, int(status.split("VmHWM:")[1].split()[0]) / 1024)
            if now > peak:
                worst, peak = path.name, now
        child.end()
        peak = max(peak, child.peak_megabytes)
        self.stand.rows.append(
            Row("media child, peak memory in MiB", f"{peak:.0f} MiB", f"{len(files)} files and bombs", peak,
                PEAK_MEGABYTES_MAX, True)
        )
        self.stand.notes.append(f"media child: most memory at {worst}; outcomes {json.dumps(outcomes)}")


def box(name: str) -> str:
    sizes = {"thumbnail": "245x156", "small": "500x500", "medium": "750x750", "large": "1000x1000"}
    # `>`: smaller only, as our rule has it.
    return sizes.get(name, "20000x20000") + ">"


def pdfinfo(path: Path) -> dict[str, str]:
    said = subprocess.run(["pdfinfo", str(path)], capture_output=True, text=True, check=True).stdout
    return dict(map(str.strip, line.split(":", 1)) for line in said.splitlines() if ":" in line)  # type: ignore[misc]
