#!/usr/bin/python3 -S
"""The service: one request after the other.

GET /health            200 ready
GET /optional/<id>     200 and the catalogue's answer, after its work
GET /priority/<id>     200 and the value, or 404
PUT /priority/<id>     204 once the value is on disk
"""

import _socket
import json
import os
import time

import wire
from wire import Answer

STATE = os.environ.get("SURGE_STATE", "/var/lib/traffic-surge")
ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


def load():
    try:
        with open(os.path.join(STATE, "state.json")) as f:
            return json.load(f)
    except FileNotFoundError:
        return {"catalogue": "", "records": {}}


def save(state):
    path = os.path.join(STATE, "state.json")
    with open(path + ".new", "w") as f:
        json.dump(state, f)
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".new", path)
    fd = os.open(STATE, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def handle(method, path, request):
    if method == "GET" and path == "/health":
        raise Answer(200, b"ready")
    lane, _, name = path[1:].partition("/")
    if lane not in ("optional", "priority") or not 0 < len(name) <= 64 or not ALPHABET.issuperset(name) or method == "DELETE":
        raise Answer(404)
    state = load()
    if lane == "optional":
        time.sleep(0.45)
        raise Answer(200, (state["catalogue"] + ":" + name[::-1]).encode())
    if method == "GET":
        if name not in state["records"]:
            raise Answer(404)
        raise Answer(200, state["records"][name].encode("utf-8", "surrogateescape"))
    state["records"][name] = request.body().decode("utf-8", "surrogateescape")
    save(state)
    raise Answer(204)


if __name__ == "__main__":
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", 8080))
    listener.listen(64)
    while True:
        fd, _ = listener._accept()
        wire.talk(_socket.socket(fileno=fd), handle)
