"""Just enough of Redis' protocol."""

import os
import socket


class Refused(Exception):
    """Redis answered with an error, or could not be asked."""


def ask(*words):
    """The answer to one command: text, a number, or None. With $COURIER_PASSWORD
    the connection is authorised by it first."""
    commands = [words]
    password = os.environ.get("COURIER_PASSWORD", "")
    if password:
        commands.insert(0, ("AUTH", password))
    try:
        with socket.create_connection(("127.0.0.1", 6379), timeout=8) as conn, conn.makefile("rb") as f:
            for c in commands:
                parts = [b"*%d\r\n" % len(c)] + [b"$%d\r\n%s\r\n" % (len(w.encode()), w.encode()) for w in c]
                conn.sendall(b"".join(parts))
                answer = read(f)
            return answer
    except OSError as e:
        raise Refused(str(e)) from None


def read(f):
    line = f.readline(4096).decode("utf-8", "replace").strip()
    if line.startswith("-"):
        raise Refused(line[1:])
    if line.startswith("$"):
        length = int(line[1:])
        return None if length < 0 else f.read(min(length, 65536) + 2)[:-2].decode("utf-8", "replace")
    if not line:
        raise Refused("no answer")
    return line[1:]
