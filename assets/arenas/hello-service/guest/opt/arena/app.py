#!/usr/bin/python3 -S
"""The service: GET /health and GET /greeting, on the port in /etc/arena/port."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/health":
            self.answer(200, b"ready")
        elif self.path == "/greeting":
            with open("/var/lib/arena/greeting", "rb") as f:
                self.answer(200, f.read().strip())
        else:
            self.answer(404, b"not found")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


with open("/etc/arena/port") as f:
    port = int(f.read())
ThreadingHTTPServer(("", port), Handler).serve_forever()
