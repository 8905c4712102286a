#!/usr/bin/python3 -S
"""The public port. Each request goes to the local port that
/var/lib/rollout/upstream names at that moment."""

import os

import wire

STATE = os.environ.get("ROLLOUT_STATE", "/var/lib/rollout")


def forward(method, path, request):
    body = request.body(absent="0")
    try:
        with open(os.path.join(STATE, "upstream"), encoding="ascii") as f:
            port = int(f.read(16))
        if not 0 < port < 65536:
            raise ValueError(port)
    except (OSError, ValueError):
        raise wire.Answer(502, b"no upstream")
    try:
        status, answer = wire.fetch(port, method, path, body, timeout=60)
    except (OSError, ValueError, wire.Malformed):
        raise wire.Answer(502, b"upstream %d does not answer" % port)
    raise wire.Answer(status, answer)


if __name__ == "__main__":
    wire.serve("proxy", os.environ.get("ROLLOUT_HOST", "0.0.0.0"), int(os.environ.get("ROLLOUT_PORT", "8080")), forward)
