#!/usr/bin/python3
"""Says whether the letter is there."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import resp


def health():
    try:
        letter = resp.ask("GET", "courier:letter")
    except resp.Refused as e:
        return 503, str(e)
    if letter is None:
        return 503, "no letter"
    return 200, "courier:" + letter


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        status, text = health() if self.path == "/health" else (404, "not found")
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("", 8080), Handler).serve_forever()
