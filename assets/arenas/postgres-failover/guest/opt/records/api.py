#!/usr/bin/python3
"""Records over HTTP, kept in PostgreSQL. Arguments: the port, and how the database is
reached.

204 to a PUT says that it was committed. What is answered 503 was not done; after 502
nobody knows."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2

port, dsn = int(sys.argv[1]), sys.argv[2] + " dbname=records user=records connect_timeout=3 keepalives_idle=2 keepalives_interval=1 keepalives_count=2"
SAFE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


class Unknown(Exception):
    """Whether it was done is not known."""


class Refused(Exception):
    """It was not done."""


class Database:
    """One connection, made anew when it breaks."""

    def __init__(self):
        self.lock, self.conn = threading.Lock(), None

    def run(self, sql, *args, write=False):
        with self.lock:
            while True:
                reused = self.conn is not None
                if not reused:
                    self.connect()
                try:
                    with self.conn.cursor() as c:
                        c.execute(sql, args)
                        return c.fetchall() if c.description else c.rowcount
                except psycopg2.errors.ReadOnlySqlTransaction as e:
                    self.drop()  # the next connection may lead elsewhere
                    raise Refused(str(e)) from None
                except psycopg2.Error as e:
                    if e.pgcode and e.pgcode[:2] not in ("08", "57"):  # neither the connection's nor the server's end
                        raise Refused(str(e)) from None
                    self.drop()
                    if write:
                        raise Unknown(str(e)) from None
                    if not reused:
                        raise Refused(str(e)) from None

    def connect(self):
        try:
            self.conn = psycopg2.connect(dsn, options="-c statement_timeout=4000")
            self.conn.autocommit = True
        except psycopg2.Error as e:
            raise Refused(str(e)) from None

    def drop(self):
        self.conn.close()
        self.conn = None


def first(e):
    """The first line of what went wrong."""
    return (str(e).strip() or "no reason").splitlines()[0]


db = Database()


class Handler(BaseHTTPRequestHandler):
    def say(self, status, text=""):
        body = text.encode()
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, do):
        try:
            self.say(*do())
        except Refused as e:
            self.say(503, first(e))
        except Unknown as e:
            self.say(502, first(e))

    def record(self):
        name = self.path.removeprefix("/records/")
        return name if name != self.path and 0 < len(name) <= 80 and SAFE.issuperset(name) else None

    def do_GET(self):
        if self.path == "/health":
            return self.answer(lambda: (200, "ready" if db.run("SELECT 1") else ""))
        if self.path == "/role":
            return self.answer(lambda: (200, "replica" if db.run("SELECT pg_is_in_recovery()")[0][0] else "primary"))
        name = self.record()
        if name is None:
            return self.say(404)

        def read():
            rows = db.run("SELECT value FROM records WHERE id = %s", name)
            return (200, rows[0][0]) if rows else (404, "no such record")

        self.answer(read)

    def do_PUT(self):
        name, length = self.record(), self.headers.get("Content-Length", "")
        if name is None or not length.isdecimal() or int(length) > 65536:
            return self.say(400)
        value = self.rfile.read(int(length)).decode("utf-8", "replace")

        def write():
            db.run("INSERT INTO records VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET value = EXCLUDED.value", name, value, write=True)
            return (204,)

        self.answer(write)

    def do_DELETE(self):
        name = self.record()
        if name is None:
            return self.say(404)

        def remove():
            db.run("DELETE FROM records WHERE id = %s", name, write=True)
            return (204,)

        self.answer(remove)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("", port), Handler).serve_forever()
