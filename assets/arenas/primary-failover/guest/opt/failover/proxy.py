#!/usr/bin/python3
"""The public port. Each request goes to the local port that
/var/lib/failover/upstream names at that moment."""

import http.client
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STATE = os.environ.get("FAILOVER_STATE", "/var/lib/failover")
MAX_BODY = 64 * 1024


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


class Proxy(BaseHTTPRequestHandler):
    timeout = 10

    def log_message(self, *args):
        pass

    def answer(self, status, body=b""):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def forward(self):
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal():
            return self.answer(411, b"length required")
        if int(length) > MAX_BODY:
            return self.answer(413, b"too large")
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            return
        try:
            with open(os.path.join(STATE, "upstream"), encoding="ascii") as f:
                port = int(f.read(16))
            if not 0 < port < 65536:
                raise ValueError(port)
        except (OSError, ValueError):
            return self.answer(502, b"no upstream")
        upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            upstream.request(self.command, self.path, body=body or None, headers={"Content-Length": str(len(body))})
            response = upstream.getresponse()
            status, answer = response.status, response.read(MAX_BODY + 1)
        except (OSError, http.client.HTTPException):
            return self.answer(502, b"upstream %d does not answer" % port)
        finally:
            upstream.close()
        self.answer(status, answer)

    do_GET = do_PUT = do_DELETE = forward


if __name__ == "__main__":
    host = os.environ.get("FAILOVER_HOST", "0.0.0.0")
    server = Server((host, int(os.environ.get("FAILOVER_PORT", "8080"))), Proxy)
    print(f"proxy listens on {server.server_port}", file=sys.stderr, flush=True)
    server.serve_forever()
