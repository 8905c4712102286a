"""A record store over HTTP.

GET /health            200 ready
GET /version           200 and the version
GET /records/<id>      200 and the value, or 404
PUT /records/<id>      204 once the value is on disk
"""

import os

import wire
from store import STATE, Store, state
from wire import Answer

ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


def record_of(path):
    name = path.removeprefix("/records/")
    return name if name != path and 0 < len(name) <= 64 and ALPHABET.issuperset(name) else None


def serve(version, port):
    os.makedirs(STATE, exist_ok=True)
    store = Store(state("records.sqlite3"))

    def handle(method, path, request):
        if method == "GET" and path == "/health":
            raise Answer(200, b"ready")
        if method == "GET" and path == "/version":
            raise Answer(200, version.encode())
        record = record_of(path)
        if record is None or method == "DELETE":
            raise Answer(404, b"no such record")
        if method == "GET":
            value = store.get(record)
            if value is None:
                raise Answer(404, b"no such record")
            raise Answer(200, value)
        store.put(record, request.body())
        raise Answer(204)

    wire.serve(version, os.environ.get("ROLLOUT_HOST", "0.0.0.0"), int(os.environ.get("ROLLOUT_PORT", port)), handle)
