#!/usr/bin/python3
"""Says what stands in the archive's row of that name."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2


def health():
    conn = psycopg2.connect("host=127.0.0.1 dbname=archive user=archivist connect_timeout=8 options='-c statement_timeout=8000'")
    try:
        with conn.cursor() as c:
            c.execute("SELECT value FROM archive WHERE name = 'health'")
            row = c.fetchone()
            return row[0] if row else "nothing"
    finally:
        conn.close()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        status = 404
        text = "not found"
        if self.path == "/health":
            try:
                status, text = 200, "archivist:" + health()
            except psycopg2.Error as e:
                status, text = 503, str(e).strip().splitlines()[-1]
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("", 8080), Handler).serve_forever()
