"""The referee's agent in a guest.

It answers the host on a virtio-serial port, one JSON object per line either
way; byte strings are base64. The host's end is package vm/guest. Requests
carry the session of the agent that they are meant for: one that was meant for
an earlier agent, before a reset, is dropped, never carried out.

What is asked often (a file, the listening sockets, a unit's state, to start or
stop a unit) is done without starting a process, which an emulated processor
would pay for dearly. Each request runs in a thread of its own, so a long one delays no other.
Modules that are slow to load are loaded when first needed.
"""

import binascii
import errno
import fcntl
import json
import os
import select
import signal
import socket
import stat
import struct
import sys
import threading
import time

MAX_LINE = 12 << 20
MAX_OUTPUT = 1 << 20
MAX_THREADS = 64
PORT = "refbox.agent"


class Refused(Exception):
    """An error with a kind of its own."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def b64(data):
    return binascii.b2a_base64(data, newline=False).decode()


def unb64(text):
    return binascii.a2b_base64(text or "")


def slurp(path, limit=MAX_OUTPUT):
    with open(path, "rb", buffering=0) as f:
        return f.read(limit)


def boot_id():
    return slurp("/proc/sys/kernel/random/boot_id").decode().strip()


def hello(_=None):
    return {
        "boot_id": boot_id(),
        "hostname": socket.gethostname(),
        "time_ns": time.time_ns(),
        "uptime": float(slurp("/proc/uptime").split()[0]),
    }


# --- files ---


def read_file(a):
    # Non-blocking, and regular files only: a pipe laid in the way must not hold
    # the reader up.
    fd = os.open(a["path"], os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Refused("not-regular", "not a regular file: " + a["path"])
        left, parts = min(a.get("limit", 0), MAX_OUTPUT), []
        while left > 0:
            part = os.read(fd, left)
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return {"data": b64(b"".join(parts))}
    finally:
        os.close(fd)


def write_path(path, data, mode):
    folder, name = os.path.split(path)
    temp = os.path.join(folder, ".%s.refbox-%d-%d" % (name, os.getpid(), threading.get_ident()))
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view):]
            os.fchmod(fd, mode)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temp, path)
    except BaseException:
        os.unlink(temp)
        raise
    fd = os.open(folder or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_file(a):
    write_path(a["path"], unb64(a.get("data")), a.get("mode", 0o644) & 0o777)


def remove(a):
    try:
        os.unlink(a["path"])
    except FileNotFoundError:
        pass


def stat_file(a):
    st = os.lstat(a["path"])
    out = {"size": st.st_size, "mode": st.st_mode, "mtime_ns": st.st_mtime_ns}
    if stat.S_ISLNK(st.st_mode):
        out["target"] = os.readlink(a["path"])
    return out


def sync(_):
    os.sync()


untars = {}
untar_lock = threading.Lock()


def untar_open(a):
    import subprocess

    proc = subprocess.Popen(
        ["tar", "-x", "-p", "--numeric-owner", "--no-overwrite-dir", "-f", "-", "-C", a["path"]],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENV)
    with untar_lock:
        handle = len(untars) + 1
        while handle in untars:
            handle += 1
        if handle > 8:
            proc.kill()
            proc.wait()
            raise Refused("busy", "too many streams of files at once")
        untars[handle] = proc
    return {"handle": handle}


def untar_data(a):
    proc = untars[a["handle"]]
    try:
        proc.stdin.write(unb64(a.get("data")))
        proc.stdin.flush()
    except BrokenPipeError:
        pass  # tar has ended; untar_close tells why


def untar_close(a):
    with untar_lock:
        proc = untars.pop(a["handle"])
    if a.get("abort"):
        proc.kill()
    try:
        proc.stdin.close()
    except BrokenPipeError:
        pass
    err = proc.stderr.read(4096)
    proc.stderr.close()
    if proc.wait() != 0 and not a.get("abort"):
        raise Refused("error", "tar: " + err.decode("utf-8", "replace").strip())
    os.sync()


# --- processes ---

ENV = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "USER": "root",
    "LANG": "C.UTF-8",
}

running = {}
running_lock = threading.Lock()


def kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(a):
    argv = a["argv"]
    if len(argv) == 5 and argv[:2] == ["systemctl", "--no-ask-password"] and argv[3] == "--" and not a.get("stdin"):
        done = systemctl(argv[2], argv[4], a.get("_id"))
        if done:
            return {"exit": done[0], "stdout": "", "stderr": b64(done[1].encode())}
    import subprocess

    request, stdin = a.get("_id"), unb64(a.get("stdin"))
    proc = subprocess.Popen(
        a["argv"], stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=ENV, cwd="/", start_new_session=True, bufsize=0)
    with running_lock:
        if request in cancelled:
            kill_group(proc.pid)
        running[request] = proc.pid
    pidfd = os.pidfd_open(proc.pid)
    try:
        return run_wait(proc, pidfd, stdin)
    finally:
        with running_lock:
            running.pop(request, None)
            cancelled.discard(request)
        os.close(pidfd)
        for pipe in (proc.stdin, proc.stdout, proc.stderr):
            if pipe:
                pipe.close()
        proc.wait()


def run_wait(proc, pidfd, stdin):
    """Waits for the process alone: what it leaves behind may hold its pipes."""
    outs = {proc.stdout.fileno(): bytearray(), proc.stderr.fileno(): bytearray()}
    first, second = outs
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    for fd in outs:
        os.set_blocking(fd, False)
        poll.register(fd, select.POLLIN)
    if stdin:
        os.set_blocking(proc.stdin.fileno(), False)
        poll.register(proc.stdin.fileno(), select.POLLOUT)
    view = memoryview(stdin)

    def drain(fd):
        """Reads what is there, keeps what there is room for."""
        for _ in range(64):
            try:
                part = os.read(fd, 65536)
            except BlockingIOError:
                return True
            if not part:
                return False
            outs[fd] += part[: MAX_OUTPUT - len(outs[fd])]
        return True

    ended = False
    while not ended:
        for fd, _ in poll.poll():
            if fd == pidfd:
                ended = True
            elif fd in outs:
                if not drain(fd):
                    poll.unregister(fd)
            else:
                try:
                    view = view[os.write(fd, view[:65536]):]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    view = view[:0]
                if not view:
                    poll.unregister(fd)
                    proc.stdin.close()
    for fd in outs:
        drain(fd)
    code = proc.wait()
    return {
        "exit": 128 - code if code < 0 else code,
        "stdout": b64(outs[first]),
        "stderr": b64(outs[second]),
    }


cancelled = set()


def cancel(a):
    with running_lock:
        pid = running.get(a["id"])
        if pid is None:
            if a["id"] in waiting:  # it has not got as far as its process
                cancelled.add(a["id"])
            return
        kill_group(pid)


waiting = set()

# --- sockets ---


def listeners(_):
    found = {}
    for path, family in (("/proc/net/tcp", socket.AF_INET), ("/proc/net/tcp6", socket.AF_INET6)):
        try:
            rows = slurp(path, 16 << 20).decode().splitlines()[1:]
        except FileNotFoundError:
            continue
        for row in rows:
            col = row.split()
            if len(col) < 10 or col[3] != "0A":
                continue
            addr, port = col[1].split(":")
            raw = binascii.a2b_hex(addr)
            raw = struct.pack(">%dI" % (len(raw) // 4), *struct.unpack("<%dI" % (len(raw) // 4), raw))
            found[col[9]] = {"ip": socket.inet_ntop(family, raw), "port": int(port, 16), "process": "", "pid": 0}
            if len(found) >= 4096:
                break
    left = {"socket:[%s]" % inode: entry for inode, entry in found.items()}
    for pid in os.listdir("/proc"):
        if not left:
            break
        if not pid.isdigit():
            continue
        try:
            for fd in os.listdir("/proc/%s/fd" % pid):
                entry = left.pop(os.readlink("/proc/%s/fd/%s" % (pid, fd)), None)
                if entry:
                    entry["pid"] = int(pid)
                    entry["process"] = slurp("/proc/%s/comm" % pid).decode("utf-8", "replace").strip()
        except OSError:
            continue  # it has gone
    return list(found.values())


def http(a):
    import http.client
    from urllib.parse import urlsplit

    url = urlsplit(a["url"])
    if url.scheme != "http" or not url.hostname:
        raise Refused("error", "not an http URL: " + a["url"])
    conn = http.client.HTTPConnection(url.hostname, url.port or 80, timeout=a["timeout"])
    late = threading.Event()

    def expire():
        late.set()
        sock = conn.sock
        if sock:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    # The socket's timeout is one for each read; this one is for all of them.
    timer = threading.Timer(a["timeout"], expire)
    timer.daemon = True
    timer.start()
    body = unb64(a.get("body"))
    try:
        path = (url.path or "/") + ("?" + url.query if url.query else "")
        conn.request(a.get("method") or "GET", path, body=body or None)
        answer = conn.getresponse()
        data = answer.read(MAX_OUTPUT)
        if late.is_set():
            return {"err": "timeout"}
        return {"status": answer.status, "body": b64(data)}
    except TimeoutError:
        return {"err": "timeout"}
    except ConnectionRefusedError:
        return {"err": "refused"}
    except (ConnectionResetError, BrokenPipeError):
        return {"err": "timeout" if late.is_set() else "reset"}
    except http.client.HTTPException as e:
        return {"err": "timeout" if late.is_set() else "protocol: " + type(e).__name__}
    except OSError as e:
        if late.is_set():
            return {"err": "timeout"}
        return {"err": {errno.EHOSTUNREACH: "unreachable", errno.ENETUNREACH: "unreachable"}.get(e.errno, str(e))}
    finally:
        timer.cancel()
        conn.close()


# --- systemd, over its private bus: no process, no bus daemon ---


def dbus_string(s):
    raw = s.encode()
    return struct.pack("<I", len(raw)) + raw + b"\0"


def pad(data, to):
    return data + b"\0" * (-len(data) % to)


def dbus_call(serial, path, interface, member, signature, body):
    fields = b""
    for code, kind, value in ((1, b"o", path), (2, b"s", interface), (3, b"s", member)):
        fields = pad(fields, 8) + struct.pack("<BB", code, 1) + kind + b"\0" + dbus_string(value)
    fields = pad(fields, 8) + struct.pack("<BB", 8, 1) + b"g\0" + struct.pack("<B", len(signature)) + signature + b"\0"
    head = b"l\1\0\1" + struct.pack("<III", len(body), serial, len(fields))
    return pad(head + fields, 8) + body


class Bus:
    """A connection to systemd's private bus."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)  # it answers nobody while it reloads, on a busy host for seconds
        self.buffer = b""
        try:
            self.socket.connect("/run/systemd/private")
            # The requests wait for the answer: systemd leaves lying what comes in
            # one piece with the greeting.
            self.socket.sendall(b"\0AUTH EXTERNAL %s\r\nBEGIN\r\n" % binascii.b2a_hex(str(os.getuid()).encode()))
            while b"\n" not in self.buffer:
                self.more()
            answer, _, self.buffer = self.buffer.partition(b"\n")
            if not answer.startswith(b"OK"):
                raise Refused("error", "systemd refused the connection")
        except BaseException:
            self.socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def more(self):
        part = self.socket.recv(65536)
        if not part:
            raise Refused("error", "systemd closed the connection")
        self.buffer += part

    def receive(self):
        """The next message: its kind (2 is a return, 3 an error, 4 a signal), the
        fields of its header, still packed, and its body."""
        while len(self.buffer) < 16:
            self.more()
        size, _, fields = struct.unpack("<III", self.buffer[4:16])
        start = 16 + fields + -fields % 8
        while len(self.buffer) < start + size:
            self.more()
        kind, head, body = self.buffer[1], self.buffer[16:start], self.buffer[start : start + size]
        self.buffer = self.buffer[start + size :]
        return kind, head, body


def dbus_strings(body, count, at=0):
    """The strings at the beginning of a message's body."""
    out = []
    for _ in range(count):
        at += -at % 4
        (n,) = struct.unpack_from("<I", body, at)
        out.append(body[at + 4 : at + 4 + n].decode("utf-8", "replace"))
        at += 5 + n
    return out


def dbus_get(path, properties):
    """Reads string and number properties; None where there is none."""
    with Bus() as bus:
        out = b""
        for i, (interface, name) in enumerate(properties):
            body = pad(dbus_string("org.freedesktop.systemd1." + interface), 4) + dbus_string(name)
            out += dbus_call(i + 1, path, "org.freedesktop.DBus.Properties", "Get", b"ss", body)
        bus.send(out)
        got = []
        while len(got) < len(properties):
            kind, _, body = bus.receive()
            if kind == 3:
                got.append(None)
            elif kind == 2:
                # A variant: the length of its signature, the signature, NUL, the
                # value at the next multiple of four.
                (n,) = struct.unpack_from("<I", body, 4)
                got.append(body[8 : 8 + n].decode("utf-8", "replace") if body[1:2] == b"s" else n)
        return got


JOBS = {"start": "StartUnit", "stop": "StopUnit", "restart": "RestartUnit", "try-restart": "TryRestartUnit"}


def systemctl(action, name, request):
    """Carries out what systemctl would for one unit, and waits for its job, as
    systemctl does. None when that is better left to systemctl itself."""
    if action not in JOBS and action != "reset-failed" or not name.endswith((".service", ".target", ".socket")):
        return None
    try:
        bus = Bus()
    except (OSError, Refused):
        return None
    with bus:
        bus.socket.settimeout(0.5)

        def receive():
            while True:
                try:
                    return bus.receive()
                except TimeoutError:
                    if request in cancelled:
                        raise Refused("error", "cancelled")

        body, signature = dbus_string(name), b"s"
        if action in JOBS:
            body, signature = pad(body, 4) + dbus_string("replace"), b"ss"
        bus.send(dbus_call(1, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
                           JOBS.get(action, "ResetFailedUnit"), signature, body))
        job, ended = None, {}
        while True:
            kind, head, body = receive()
            if kind == 3:
                # systemd's own name of the error stands among the fields.
                code = 5 if b"NoSuchUnit" in head and action in JOBS else 1
                why = dbus_strings(body, 1)[0] if len(body) > 4 else "refused"
                return code, "Failed to %s %s: %s\n" % (action, name, why)
            if kind == 2:
                if action == "reset-failed":
                    return 0, ""
                (job,) = dbus_strings(body, 1)
            elif kind == 4 and b"\0JobRemoved\0" in head:
                # A number, the job, its unit, its result. It may come before the
                # answer that names the job.
                path, _, result = dbus_strings(body, 3, 4)
                ended[path] = result
            if job in ended:
                if ended[job] in ("done", "skipped"):
                    return 0, ""
                return 1, "Job for %s failed: %s\n" % (name, ended[job])


UNIT = ("LoadState", "ActiveState", "SubState", "UnitFileState")


def unit(a):
    name = a["name"]
    escaped = "".join(
        chr(c) if chr(c).isalnum() and c < 128 and (i or not chr(c).isdigit()) else "_%02x" % c
        for i, c in enumerate(name.encode()))
    path = "/org/freedesktop/systemd1/unit/" + (escaped or "_")
    ask = [("Unit", p) for p in UNIT] + [("Service", "MainPID"), ("Service", "NRestarts")]
    load, active, sub, file, pid, restarts = dbus_get(path, ask)
    if load is None:
        raise Refused("not-exist", "no such unit: " + name)
    return {"load": load, "active": active or "", "sub": sub or "", "file": file or "",
            "pid": pid or 0, "restarts": restarts or 0}


def power(a):
    # What systemd takes these signals to mean is in systemd(1): reboot.target,
    # poweroff.target.
    os.kill(1, signal.SIGRTMIN + {"poweroff": 4, "reboot": 5}[a["how"]])


# --- identity ---


def set_clock(a):
    time.clock_settime_ns(time.CLOCK_REALTIME, a["time_ns"] + time.monotonic_ns() - a["_at"])
    return {"time_ns": time.time_ns()}


def clock(a):
    """Tells the time, after putting it forward by what is asked."""
    if a.get("forward_ns"):
        time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns() + a["forward_ns"])
    return {"time_ns": time.time_ns()}


def overwrite(path, text, mode=0o644):
    """Writes in place: cheaper than a new file, and none of these is read meanwhile."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        data = text.encode()
        os.write(fd, data)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)


def add_entropy(data):
    RNDADDENTROPY, RNDRESEEDCRNG = 0x40085203, 0x5207
    fd = os.open("/dev/urandom", os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, RNDADDENTROPY, struct.pack("ii", len(data) * 8, len(data)) + data)
        fcntl.ioctl(fd, RNDRESEEDCRNG)
    finally:
        os.close(fd)


def set_address(mac, cidr):
    address, bits = cidr.split("/")
    mask = (0xFFFFFFFF << (32 - int(bits))) & 0xFFFFFFFF
    for name in os.listdir("/sys/class/net"):
        if slurp("/sys/class/net/%s/address" % name).decode().strip().lower() != mac.lower():
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            def request(code, raw):
                fcntl.ioctl(s, code, struct.pack("16s24s", name.encode(), raw))

            def sockaddr(packed):
                return struct.pack("<HH4s", socket.AF_INET, 0, packed)

            request(0x8916, sockaddr(socket.inet_aton(address)))  # SIOCSIFADDR
            request(0x891C, sockaddr(struct.pack(">I", mask)))  # SIOCSIFNETMASK
            request(0x8914, struct.pack("<H", 0x41))  # SIOCSIFFLAGS: UP, RUNNING
        return
    raise Refused("error", "no network card with address " + mac)


def identify(a):
    done = set_clock(a)
    if a.get("entropy"):
        add_entropy(unb64(a["entropy"]))
    name = a["hostname"]
    socket.sethostname(name)

    overwrite("/etc/hostname", name + "\n")
    overwrite("/etc/machine-id", a["machine_id"] + "\n", 0o444)
    hosts = "127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost ip6-localhost ip6-loopback\n" % name
    overwrite("/etc/hosts", hosts + "".join("%s %s\n" % (h["ip"], h["name"]) for h in a.get("hosts") or ()))
    overwrite("/etc/ssh/ssh_host_ed25519_key", a["host_key"], 0o600)
    overwrite("/etc/ssh/ssh_host_ed25519_key.pub", a["host_key_pub"])
    os.makedirs("/root/.ssh", 0o700, exist_ok=True)
    overwrite("/root/.ssh/authorized_keys", a.get("authorized_keys") or "", 0o600)
    if a.get("password"):
        rows = slurp("/etc/shadow").decode().splitlines(True)
        for i, row in enumerate(rows):
            if row.startswith("root:"):
                col = row.split(":")
                col[1] = a["password"]
                rows[i] = ":".join(col)
        overwrite("/etc/shadow", "".join(rows), 0o600)
    links = a.get("links") or ()
    # The initrd reads this file at each boot.
    overwrite("/etc/refbox/links", "".join("%s %s\n" % (l["mac"], l["cidr"]) for l in links))
    for l in links:
        set_address(l["mac"], l["cidr"])
    # A cut must not bring an earlier identity back; the host need not wait.
    a["_after"].append(after_identify)
    done["time_ns"] = time.time_ns()
    return done


def after_identify():
    os.sync()
    # The login prompt shows the name that was.
    pid = dbus_get("/org/freedesktop/systemd1/unit/serial_2dgetty_40ttyS0_2eservice", [("Service", "MainPID")])[0]
    if pid and slurp("/proc/%d/comm" % pid).strip() == b"agetty":
        os.kill(pid, signal.SIGTERM)


def grow(_):
    device = os.stat("/").st_dev
    sectors = int(slurp("/sys/dev/block/%d:%d/size" % (os.major(device), os.minor(device))))
    vfs = os.statvfs("/")
    blocks = sectors * 512 // vfs.f_frsize
    EXT4_IOC_RESIZE_FS = 0x40086610
    fd = os.open("/", os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, EXT4_IOC_RESIZE_FS, struct.pack("Q", blocks))
    finally:
        os.close(fd)


def settle(_):
    import http.client  # noqa: F401
    import subprocess
    import urllib.parse  # noqa: F401

    subprocess.run(["true"], env=ENV)
    listeners(None)
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("3")


# --- the port ---

VERBS = {
    "run": run, "read": read_file, "write": write_file, "remove": remove, "stat": stat_file, "sync": sync,
    "untar-open": untar_open, "untar-data": untar_data, "untar-close": untar_close,
    "listeners": listeners, "unit": unit, "http": http, "power": power,
    "identify": identify, "grow": grow, "settle": settle,
}
# Answered by the reader itself, so that they are answered whatever else runs.
AT_ONCE = {"ping": hello, "clock": clock, "cancel": cancel}


class Pool:
    """Threads that are kept, as starting one is not free."""

    def __init__(self):
        self.ready = threading.Condition()
        self.jobs, self.idle, self.threads = [], 0, 0

    def submit(self, job, *args):
        with self.ready:
            self.jobs.append((job, args))
            if self.idle >= len(self.jobs):
                self.ready.notify()
            elif self.threads < MAX_THREADS:
                self.threads += 1
                threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            with self.ready:
                while not self.jobs:
                    self.idle += 1
                    self.ready.wait()
                    self.idle -= 1
                job, args = self.jobs.pop(0)
            try:
                job(*args)
            except Exception as e:
                print("refbox agent: %s: %s" % (job.__name__, e), file=sys.stderr, flush=True)


pool = Pool()


class Agent:
    def __init__(self, fd):
        self.fd = fd
        self.lock = threading.Lock()
        self.session = "%s.%d.%d" % (boot_id()[:8], os.getpid(), time.monotonic_ns())

    def send(self, message, before=b""):
        view = memoryview(before + json.dumps(message).encode() + b"\n")
        with self.lock:
            while view:
                view = view[os.write(self.fd, view):]

    def greet(self):
        # The newline ends what a predecessor may have left half said.
        self.send({"session": self.session, "hello": hello()}, b"\n")

    def take(self, line, at):
        try:
            message = json.loads(line)
            verb, request = message["verb"], message.get("id")
            args = message.get("args") or {}
        except (ValueError, KeyError, AttributeError, TypeError):
            return  # half a request, from before a reset
        if verb == "hello":
            self.greet()
            return
        if message.get("session") != self.session:
            return
        if not isinstance(args, dict):
            args = {}
        args["_id"], args["_at"], args["_after"] = request, at, []
        if verb in AT_ONCE:
            self.answer(request, AT_ONCE[verb], args)
            return
        with running_lock:
            waiting.add(request)
        pool.submit(self.answer, request, VERBS.get(verb), args)

    def answer(self, request, verb, args):
        try:
            if verb is None:
                raise Refused("error", "unknown verb")
            message = {"id": request, "ok": verb(args)}
        except Refused as e:
            message = {"id": request, "kind": e.kind, "error": str(e)}
        except OSError as e:
            kinds = {errno.ENOENT: "not-exist", errno.ENOTDIR: "not-exist", errno.EEXIST: "exist",
                     errno.EACCES: "permission", errno.EPERM: "permission"}
            message = {"id": request, "kind": kinds.get(e.errno, "error"), "error": str(e)}
        except Exception as e:
            message = {"id": request, "kind": "error", "error": "%s: %s" % (type(e).__name__, e)}
        with running_lock:
            waiting.discard(request)
            cancelled.discard(request)
        if request is not None:
            self.send(message)
        for job in args["_after"]:
            pool.submit(job)

    def serve(self, hangup_ends):
        self.greet()
        line, skip = bytearray(), False
        while True:
            part = os.read(self.fd, 65536)
            at = time.monotonic_ns()
            if not part:
                if hangup_ends:
                    return
                time.sleep(0.02)  # nobody is connected on the host, and nothing tells when
                continue
            head, *rest = part.split(b"\n")
            if not skip:
                line += head
            for piece in rest:
                if not skip and line:
                    self.take(bytes(line), at)
                line, skip = bytearray(piece), False
            if len(line) > MAX_LINE:
                line, skip = bytearray(), True


def find_port():
    for port in os.listdir("/sys/class/virtio-ports"):
        if slurp("/sys/class/virtio-ports/%s/name" % port).strip() == PORT.encode():
            return "/dev/" + port
    return None


def main(argv):
    if len(argv) == 2 and argv[1].startswith("fd:"):  # a socket that was handed over
        Agent(int(argv[1][3:])).serve(True)
        return 0
    port = find_port()
    if port is None:
        print("refbox agent: no port called " + PORT, file=sys.stderr)
        return 1
    Agent(os.open(port, os.O_RDWR | os.O_CLOEXEC)).serve(False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
