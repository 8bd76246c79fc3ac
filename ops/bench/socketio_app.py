"""The chat of the Strapi tutorial on python-socketio and uvicorn: what many would write. Nothing is stored: a message
costs it no commit."""

import json
import time
from collections import defaultdict

import socketio

TEXTS_MAX = 200

server = socketio.AsyncServer(async_mode="asgi", cors_allowed_origins="*")
app = socketio.ASGIApp(server)
rooms: dict[str, list[dict]] = defaultdict(list)


@server.event
async def join_room(sid: str, data: dict) -> None:
    await server.enter_room(sid, data["room"])


@server.event
async def send_message(sid: str, data: dict) -> None:
    texts = rooms[data["room"]]
    texts.append({"id": len(texts) + 1, "source": 1, "text": data["text"], "created": int(time.time() * 1000)})
    row = {"id": 1, "room": data["room"], "texts": texts[-TEXTS_MAX:]}
    await server.emit("room_messages", json.dumps({"message": row, **row}), room=data["room"])


@server.event
async def say(sid: str, data: dict) -> None:
    """The plain way: the message itself, to all in the room."""
    message = {"type": "message", "room": 1, "seq": 1, "sender": 7, "kind": "text", "id": "b1946ac9", **data}
    await server.emit("message", message, room=data["room"])
