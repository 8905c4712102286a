"""A record store over HTTP, shared by the old primary and the replica.

GET /health            200 ready
GET /role              200 primary or replica
GET /records/<id>      200 and the value, or 404
PUT /records/<id>      204 once the value is on disk, or 503 on a replica
DELETE /records/<id>   204, or 503 on a replica
"""

import os
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from store import STATE, Store, state

MAX_VALUE = 64 * 1024
RECORD = re.compile(r"/records/([a-z0-9-]{1,64})")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


class Handler(BaseHTTPRequestHandler):
    timeout = 10
    store = None

    def role(self):
        raise NotImplementedError

    def log_message(self, *args):
        pass

    def answer(self, status, body=b""):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/health":
            return self.answer(200, b"ready")
        if self.path == "/role":
            return self.answer(200, self.role().encode())
        record = RECORD.fullmatch(self.path)
        value = self.store.get(record[1]) if record else None
        if value is None:
            return self.answer(404, b"no such record")
        self.answer(200, value)

    def do_PUT(self):
        record = RECORD.fullmatch(self.path)
        if not record:
            return self.answer(404, b"no such record")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            return self.answer(411, b"length required")
        if int(length) > MAX_VALUE:
            return self.answer(413, b"too large")
        value = self.rfile.read(int(length))
        if len(value) != int(length):
            return
        if self.role() != "primary":
            return self.answer(503, b"read-only: not the primary")
        self.store.put(record[1], value)
        self.answer(204)

    def do_DELETE(self):
        record = RECORD.fullmatch(self.path)
        if not record:
            return self.answer(404, b"no such record")
        if self.role() != "primary":
            return self.answer(503, b"read-only: not the primary")
        self.store.delete(record[1])
        self.answer(204)


def serve(handler, database, port):
    os.makedirs(STATE, exist_ok=True)
    handler.store = Store(state(database))
    host = os.environ.get("FAILOVER_HOST", "0.0.0.0")
    server = Server((host, int(os.environ.get("FAILOVER_PORT", port))), handler)
    print(f"{handler.__name__.lower()} listens on {server.server_port}", file=sys.stderr, flush=True)
    server.serve_forever()
