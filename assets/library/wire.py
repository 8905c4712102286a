"""Just enough HTTP for small programs, on the C half of Python's sockets: the
library's own server and client take an emulated processor a second to load, and
most of the time of a request."""

import _socket
import _thread
import sys

MAX_HEAD = 16 * 1024
MAX_BODY = 64 * 1024
METHODS = ("GET", "PUT", "DELETE")
REASONS = {
    200: "OK", 202: "Accepted", 204: "No Content", 400: "Bad Request", 404: "Not Found", 409: "Conflict",
    411: "Length Required", 413: "Content Too Large", 429: "Too Many Requests", 501: "Not Implemented",
    502: "Bad Gateway", 503: "Service Unavailable",
}


class Malformed(Exception):
    """What came is no HTTP."""


class Answer(Exception):
    """Raised to answer a request."""

    def __init__(self, status, body=b""):
        super().__init__(status)
        self.status, self.body = status, body


class Message:
    """A request or a response: the words of its first line, its headers by
    lower-case name, and its body, which is read when asked for."""

    def __init__(self, conn):
        self.conn, data, end = conn, b"", 0
        while not end:
            part = conn.recv(16384)
            if not part or len(data) > MAX_HEAD:
                raise Malformed
            data += part
            for mark in (b"\r\n\r\n", b"\n\n"):
                if mark in data:
                    end = data.index(mark) + len(mark)
                    break
        first, *lines = data[:end].decode("latin-1").splitlines()
        self.words, self.headers, self.rest = first.split(), {}, data[end:]
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()

    def read(self, length):
        """The body of that length, or what there is up to one more than is allowed."""
        want = MAX_BODY + 1 if length is None else length
        while len(self.rest) < want:
            part = self.conn.recv(65536)
            if not part:
                break
            self.rest += part
        if length is not None and len(self.rest) < length:
            raise Malformed
        return self.rest[:want]

    def body(self, absent=""):
        """The body of a request; absent is the length of one that states none."""
        length = self.headers.get("content-length", absent)
        if not length.isdecimal():
            raise Answer(411, b"length required")
        if len(length) > 9 or int(length) > MAX_BODY:
            raise Answer(413, b"too large")
        return self.read(int(length))


def serve(name, host, port, handle, methods=METHODS):
    """Answers requests for ever. Handle is called with method, path and message,
    in a thread of its own, and raises Answer; methods are those it knows."""
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(64)
    print(f"{name} listens on {listener.getsockname()[1]}", file=sys.stderr, flush=True)
    while True:
        try:
            fd, _ = listener._accept()
        except OSError:
            continue
        conn = _socket.socket(fileno=fd)
        try:
            _thread.start_new_thread(talk, (conn, handle, methods))
        except RuntimeError:  # too many threads
            conn.close()


def talk(conn, handle, methods=METHODS):
    try:
        conn.settimeout(10)
        try:
            message = Message(conn)
            method, path = message.words[:2]
            if method not in methods:
                raise Answer(501)
            handle(method, path, message)
        except Answer as a:
            answer = a
        except ValueError:
            answer = Answer(400)
        head = "HTTP/1.0 %d %s\r\n" % (answer.status, REASONS.get(answer.status, ""))
        if answer.status != 204:
            head += "Content-Length: %d\r\n" % len(answer.body)
        conn.sendall(head.encode() + b"\r\n" + answer.body)
        # Closed with something unread, a connection is reset, and the answer may
        # be lost.
        conn.shutdown(_socket.SHUT_WR)
        conn.settimeout(1)
        for _ in range(64):
            if not conn.recv(16384):
                break
    except (OSError, Malformed):
        pass
    finally:
        conn.close()


def fetch(port, method, path, body, timeout=5):
    """Asks a local port; gives status and body. The timeout, in seconds, is that of
    each step. Raises OSError, ValueError or Malformed."""
    conn = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        conn.settimeout(timeout)
        conn.connect(("127.0.0.1", port))
        head = "%s %s HTTP/1.0\r\nHost: 127.0.0.1:%d\r\nContent-Length: %d\r\n\r\n" % (method, path, port, len(body))
        conn.sendall(head.encode("latin-1") + body)
        message = Message(conn)
        status = int(message.words[1])
        if not 200 <= status <= 599:
            raise ValueError(status)
        if status == 204 or status == 304:
            return status, b""
        length = message.headers.get("content-length")
        return status, message.read(None if length is None else min(int(length), MAX_BODY + 1))
    except IndexError:
        raise Malformed from None
    finally:
        conn.close()
