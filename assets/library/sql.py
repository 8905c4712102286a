"""SQL over HTTP: what the referee's client, which speaks HTTP, writes and reads.

    sql.py PORT DSN

PUT of /records/ID or /witness/ID stores the body as that row's value. It is
acknowledged, with 204, only after COMMIT has returned, with synchronous_commit as
the cluster has it (on: the replica has the commit on its disk, as long as there is
a replica). 503 says that nothing was done for certain: no connection was there, or
the server refuses to write. Everything else that goes wrong is 500: the row may be
there or not.

GET of the same gives the value, /prices the price list, and /state what this
server says of itself as JSON.
"""

import http.server
import json
import queue
import select
import sys
import threading

import psycopg2

TABLES = ("records", "witness")
STATE = """
SELECT pg_is_in_recovery(),
       CASE WHEN pg_is_in_recovery() THEN (SELECT received_tli FROM pg_stat_wal_receiver)
            ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END,
       (SELECT system_identifier::text FROM pg_control_system()),
       COALESCE(pg_last_wal_replay_lsn(), '0/0')::text,
       (SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'),
       current_setting('synchronous_commit'), current_setting('synchronous_standby_names')
"""

idle = queue.LifoQueue()
DSN = ""


class NotDone(Exception):
    """Nothing was sent that could have been done."""


def connection():
    while True:
        try:
            c = idle.get_nowait()
        except queue.Empty:
            break
        # A server that went away while the connection was idle has said so.
        if not c.closed and not select.select([c], [], [], 0)[0]:
            return c
        c.close()
    try:
        c = psycopg2.connect(DSN, connect_timeout=2, application_name="lab", keepalives_idle=5,
                             keepalives_interval=2, keepalives_count=3, tcp_user_timeout=15000)
        c.autocommit = True
        return c
    except psycopg2.Error as e:
        raise NotDone(str(e).strip())


def ask(sql, args=()):
    c = connection()
    try:
        with c.cursor() as cur:
            cur.execute(sql, args)
            rows = cur.fetchall() if cur.description else []
        # A wait for the replica that was cancelled is a warning, and a commit that
        # only this server has.
        if any("not have been replicated" in n for n in c.notices):
            raise RuntimeError("committed here alone")
        idle.put(c)
        return rows
    except psycopg2.errors.ReadOnlySqlTransaction as e:
        idle.put(c)
        raise NotDone(str(e).strip())
    except BaseException:
        c.close()
        raise


def put(table, key, value):
    ask("INSERT INTO %s VALUES (%%s, %%s) ON CONFLICT (id) DO UPDATE SET value = excluded.value" % table, (key, value))


def state():
    r = ask(STATE)[0]
    return json.dumps({"recovery": r[0], "timeline": r[1], "system": r[2], "replayed": r[3], "replicas": r[4],
                       "synchronous_commit": r[5], "synchronous_standby": r[6]})


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def answer(self, status, body=""):
        data = body.encode()
        self.send_response_only(status)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        if status != 204:
            self.wfile.write(data)
        self.close_connection = True

    def row(self):
        _, table, key = (self.path.split("/") + ["", ""])[:3]
        return (table, key) if table in TABLES and 0 < len(key) <= 100 else (None, None)

    def serve(self, do):
        try:
            do()
        except NotDone as e:
            self.answer(503, str(e)[:200])
        except Exception as e:
            self.answer(500, str(e).strip()[:200])

    def do_PUT(self):
        table, key = self.row()
        size = int(self.headers.get("Content-Length") or 0)
        if not table or size > 4096:
            return self.answer(404)
        value = self.rfile.read(size).decode("utf-8", "replace")

        def do():
            put(table, key, value)
            self.answer(204)

        self.serve(do)

    def do_GET(self):
        def do():
            if self.path == "/state":
                return self.answer(200, state())
            if self.path == "/prices":
                return self.answer(200, "".join("%s %d\n" % r for r in ask("SELECT item, cents FROM prices ORDER BY item")))
            table, key = self.row()
            rows = ask("SELECT value FROM %s WHERE id = %%s" % table, (key,)) if table else []
            self.answer(200, rows[0][0]) if rows else self.answer(404)

        self.serve(do)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    slots = threading.BoundedSemaphore(64)

    def process_request_thread(self, request, address):
        with self.slots:
            super().process_request_thread(request, address)


if __name__ == "__main__":
    port, DSN = int(sys.argv[1]), sys.argv[2]
    Server(("", port), Handler).serve_forever()
