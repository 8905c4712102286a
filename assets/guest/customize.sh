# Runs in mmdebstrap's customize hook, outside the root file system, which is
# $1. Leaves what the initrd is made from under $1/boot; the disk gets none of it.
set -eu
root=$1
sys=$root/etc/systemd/system

# --- the kernel and busybox, unpacked, not installed: no initramfs-tools here
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
mkdir -p "$root/boot/debs" "$root/boot/busybox"
kernel=$(apt-cache depends --important linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
[ -n "$kernel" ] || { echo "E: apt knows no linux-image-cloud-amd64" >&2; exit 1; }
(cd "$root/boot/debs" && apt-get -q -o APT::Sandbox::User=root download "$kernel" busybox-static)
for deb in "$root"/boot/debs/linux-image-*.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink ./boot ./lib/modules
done
for deb in "$root"/boot/debs/busybox-static_*.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root/boot/busybox"
done
{
	chroot "$root" dpkg-query -W -f '${Package} ${Version}\n'
	for deb in "$root"/boot/debs/*.deb; do
		dpkg-deb -W --showformat='${Package} ${Version}\n' "$deb"
	done
} | LC_ALL=C sort >"$root/boot/packages"
rm -r "$root/boot/debs"

# --- of the modules, what a machine of this kind has a use for
for dir in "$root"/lib/modules/*; do
	version=${dir##*/}
	mkdir "$dir.kept"
	for keep in drivers/acpi/button drivers/block/loop drivers/block/virtio_blk drivers/char/hw_random \
		drivers/char/virtio_console drivers/net/dummy drivers/net/net_failover drivers/net/veth \
		drivers/net/virtio_net drivers/virtio fs/autofs fs/overlayfs net/core/failover net/sched net/netfilter \
		net/ipv4/netfilter net/ipv6/netfilter lib; do
		for path in "$dir/kernel/$keep" "$dir/kernel/$keep".ko*; do
			[ -e "$path" ] || continue
			to=$dir.kept/kernel/${path#"$dir/kernel/"}
			mkdir -p "${to%/*}"
			mv "$path" "$to"
		done
	done
	mv "$dir"/modules.builtin* "$dir"/modules.order "$dir.kept/"
	rm -r "$dir"
	mv "$dir.kept" "$dir"
	find "$dir" -name '*.ko.xz' -exec unxz {} +
	chroot "$root" depmod -a "$version"
done

# --- units: nothing that this machine has no use for
mask() {
	for unit in "$@"; do ln -sf /dev/null "$sys/$unit"; done
}
mask systemd-udevd.service systemd-udev-trigger.service systemd-udev-settle.service \
	systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-hwdb-update.service \
	systemd-logind.service systemd-user-sessions.service getty@.service autovt@.service \
	systemd-random-seed.service systemd-update-utmp.service systemd-update-utmp-runlevel.service \
	systemd-journal-flush.service systemd-journald-audit.socket systemd-tmpfiles-setup.service systemd-tmpfiles-setup-dev.service \
	systemd-tmpfiles-clean.timer systemd-remount-fs.service systemd-sysctl.service \
	systemd-modules-load.service kmod-static-nodes.service systemd-binfmt.service \
	systemd-firstboot.service systemd-sysusers.service systemd-machine-id-commit.service \
	systemd-boot-system-token.service systemd-pcrphase.service systemd-pcrphase-sysinit.service \
	systemd-pstore.service systemd-update-done.service systemd-initctl.socket \
	systemd-ask-password-console.path systemd-ask-password-wall.path \
	systemd-repart.service systemd-fsck-root.service ldconfig.service \
	dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount \
	sys-kernel-config.mount sys-fs-fuse-connections.mount proc-sys-fs-binfmt_misc.automount \
	modprobe@.service dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
	ssh.service
mkdir -p "$root/etc/systemd/system-generators"
for generator in "$root"/lib/systemd/system-generators/*; do
	ln -sf /dev/null "$root/etc/systemd/system-generators/${generator##*/}"
done
rm -f "$root"/etc/systemd/system/multi-user.target.wants/* "$root"/etc/systemd/system/sysinit.target.wants/* \
	"$root"/etc/systemd/system/*.wants/*.timer "$root"/lib/systemd/system/multi-user.target.wants/dbus.service \
	"$root"/etc/rc*.d/*
enable() {
	mkdir -p "$sys/$2.wants"
	ln -sf "/etc/systemd/system/${3:-$1}" "$sys/$2.wants/$1"
}
enable refbox-agent.service sysinit.target
enable ssh.socket sockets.target
enable serial-getty@ttyS0.service getty.target serial-getty@.service
ln -sf /lib/systemd/system/multi-user.target "$sys/default.target"

# --- the agent, compiled, as compiling takes an emulated processor long
chroot "$root" python3 -I -c "import py_compile as p
p.compile('/usr/lib/refbox/agent.py', cfile='/usr/lib/refbox/agent.pyc', doraise=True,
          invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)"

# --- what the agent is and runs on, for the initrd to compare at the host's order
chroot "$root" python3 -I -S - >"$root/boot/sums" <<'EOF'
import ast, subprocess, sys
agent = "/usr/lib/refbox/agent.py"
for node in ast.walk(ast.parse(open(agent).read())):
    if isinstance(node, ast.Import):
        for name in node.names:
            __import__(name.name)
files = {"/usr/lib/refbox/agent.pyc", "/etc/systemd/system/refbox-agent.service", "/etc/ld.so.cache", "/usr/bin/python3"}
for m in list(sys.modules.values()):
    files.update(f for f in (getattr(m, "__file__", None), getattr(m, "__cached__", None)) if f)
for line in subprocess.run(["ldd", "/usr/bin/python3"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
    files.update(w for w in line.split() if w.startswith("/"))
import hashlib, os
links = {}
def real(f):
    """The path without the links on its way, which are kept."""
    done, rest = "", f.strip("/").split("/")
    while rest:
        part = rest.pop(0)
        at = done + "/" + part
        if part == "..":
            done = os.path.dirname(done)
        elif os.path.islink(at):
            links[at] = to = os.readlink(at)
            done, rest = "" if to.startswith("/") else done, to.strip("/").split("/") + rest
        else:
            done = at
    return done
for f in sorted({real(f) for f in files}):
    if os.path.exists(f):
        print("%s  %s" % (hashlib.sha256(open(f, "rb").read()).hexdigest(), f.lstrip("/")))
for f in sorted(links):
    print("link %s %s" % (links[f], f.lstrip("/")))
EOF

# --- no identity: a machine gets one when it starts
rm -f "$root"/etc/ssh/ssh_host_* "$root"/etc/resolv.conf "$root"/var/lib/systemd/random-seed
mkdir -p "$root/etc/refbox" "$root/root/.ssh" "$root/run/sshd"
chmod 700 "$root/root/.ssh"
echo guest >"$root/etc/hostname"
printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
echo 00000000000040008000000000000001 >"$root/etc/machine-id"
: >"$root/etc/fstab"
: >"$root/etc/motd"
: >"$root/etc/resolv.conf"
mkdir -p "$root/var/lib/dbus"
ln -sf /etc/machine-id "$root/var/lib/dbus/machine-id"
rm -rf "$root"/var/lib/apt "$root"/var/cache/apt "$root"/etc/apt "$root"/var/cache/debconf/*-old \
	"$root"/var/lib/dpkg/*-old "$root"/usr/share/bash-completion "$root"/usr/share/zsh
find "$root/var/log" -type f -delete
