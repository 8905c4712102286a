#!/usr/bin/python3
"""The router behind the gate: one route, in a file. Anyone who gets through may
change it."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROUTE = "/var/lib/gatekeeper/route"


class Handler(BaseHTTPRequestHandler):
    def say(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path != "/health":
            return self.say(404, "not found")
        with open(ROUTE) as f:
            route = f.read(64).strip()
        if route == "checkout":
            return self.say(200, "gatekeeper:ok")
        self.say(503, "the route leads to " + route)

    def do_PUT(self):
        length = self.headers.get("Content-Length", "")
        if self.path != "/routes/checkout" or not length.isdecimal() or int(length) > 64:
            return self.say(400, "bad request")
        with open(ROUTE, "wb") as f:
            f.write(self.rfile.read(int(length)))
        self.say(200, "changed")

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", 9000), Handler).serve_forever()
