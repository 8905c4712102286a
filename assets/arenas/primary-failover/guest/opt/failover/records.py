"""A record store over HTTP, shared by the old primary and the replica.

GET /health            200 ready
GET /role              200 primary or replica
GET /records/<id>      200 and the value, or 404
PUT /records/<id>      204 once the value is on disk, or 503 on a replica
DELETE /records/<id>   204, or 503 on a replica
"""

import os

import wire
from store import STATE, Store, state
from wire import Answer

ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


def record_of(path):
    name = path.removeprefix("/records/")
    return name if name != path and 0 < len(name) <= 64 and ALPHABET.issuperset(name) else None


def serve(name, role, database, port):
    """Serves a database; role() says what this is at the moment."""
    os.makedirs(STATE, exist_ok=True)
    store = Store(state(database))

    def handle(method, path, request):
        if method == "GET" and path == "/health":
            raise Answer(200, b"ready")
        if method == "GET" and path == "/role":
            raise Answer(200, role().encode())
        record = record_of(path)
        if record is None:
            raise Answer(404, b"no such record")
        if method == "GET":
            value = store.get(record)
            if value is None:
                raise Answer(404, b"no such record")
            raise Answer(200, value)
        value = request.body() if method == "PUT" else None
        if role() != "primary":
            raise Answer(503, b"read-only: not the primary")
        if method == "PUT":
            store.put(record, value)
        else:
            store.delete(record)
        raise Answer(204)

    wire.serve(name, os.environ.get("FAILOVER_HOST", "0.0.0.0"), int(os.environ.get("FAILOVER_PORT", port)), handle)
