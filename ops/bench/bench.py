"""make bench: Martlet beside nginx, pgbench, FastAPI and others, in one run on one machine. Ratios count, not figures.

Called by ops/scripts/bench, which has built the programs and started a PostgreSQL: MARTLET_DATABASE_URL names an empty
database in it, with the schema migrated. BENCH_ONLY names the measures to take, instead of all.
"""

import os
import re
from pathlib import Path

from alert_rows import AlertRows
from chat_fleet import ChatFleet
from chat_rows import ChatRows
from gateway_rows import GatewayRows
from media_rows import MediaRows
from queue_rows import QueueRows
from search_data import SearchData
from search_rows import SearchRows
from socketio_rows import SocketIORows
from stand import CONNECTIONS, LOAD_CORE, ROUNDS, SECONDS, SERVER_CORE, Stand
from upload_rows import UploadRows

ONLY = set(os.environ.get("BENCH_ONLY", "").split())


def machine() -> str:
    model = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1024**3
    name = model.group(1) if model else "unknown processor"
    return f"{os.cpu_count()} cores of {name}, {memory:.0f} GiB, Linux {os.uname().release}"


def main() -> None:
    stand = Stand(Path(os.environ["BENCH_FOLDER"]))
    print(f"Machine: {machine()}")
    print(f"Each load: {SECONDS} s, {CONNECTIONS} connections, the median of {ROUNDS} rounds in turns.", flush=True)
    gateway, socketio, chat, fleet = GatewayRows(stand), SocketIORows(stand), ChatRows(stand), ChatFleet(stand)
    media, uploads, queue = MediaRows(stand), UploadRows(stand), QueueRows(stand)
    many = SearchData(stand)
    search, alerts = SearchRows(stand, many), AlertRows(stand, many)
    # The import makes the rows of the gateway's other measures.
    of_postings = (gateway.starts, gateway.constant, gateway.posting_by_id, gateway.postings_list)
    of_chat = (chat.fan_out, chat.sends, chat.latency, chat.neighbour, fleet.idle, fleet.comeback, socketio.socketio)
    of_media = (media.variants, media.documents, media.child_memory, uploads.upload_memory, uploads.uploads)
    others = (*of_chat, *of_media, queue.queue, queue.queue_held)
    # Last, as what they add to the database is most of it.
    of_many = (search.search, alerts.alerts)
    known = {measure.__name__ for measure in (gateway.imports, *of_postings, *others, *of_many)}
    if ONLY - known:
        raise SystemExit(f"BENCH_ONLY knows no {' '.join(ONLY - known)}; there are {' '.join(sorted(known))}.")
    wanted = [measure for measure in (*of_postings, *others, *of_many) if not ONLY or measure.__name__ in ONLY]
    needing = {measure.__name__ for measure in (gateway.imports, *of_postings, *of_many)}
    if not ONLY or needing & ONLY:
        wanted.insert(0, gateway.imports)
    for measure in wanted:
        print(f"… {measure.__name__.replace('_', ' ')}", flush=True)
        measure()
    print()
    print(f"{'what':<34} {'Martlet':>22} {'beside':>30} {'ratio':>9}   target")
    for row in stand.rows:
        print(row.text())
    print()
    for note in stand.notes:
        print(f"  {note}")
    print(f"  wrk -t1 -c{CONNECTIONS} -d{SECONDS}s; services, nginx and uvicorn with one loop each;")
    print(f"  constant answer, fan-out: server on core {SERVER_CORE}, load on core {LOAD_CORE}; the rest not pinned.")


if __name__ == "__main__":
    main()
