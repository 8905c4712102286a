# Runs in mmdebstrap's customize hook, before customize.sh, for an image with an
# arena's packages. $1 is the root file system. None of their services starts at
# boot by itself: what an installation enabled is disabled again, with its aliases,
# and what a package links to a target in its own folder loses that link. What is
# to run, the arena's set-up enables.
set -eu
root=$1
rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/systemd/system/*.requires
find "$root/etc/systemd/system" -maxdepth 1 -type l -delete
for link in "$root"/lib/systemd/system/*.wants/* "$root"/lib/systemd/system/*.requires/*; do
	[ -h "$link" ] || continue
	name=${link#"$root"}
	owner=$(chroot "$root" dpkg-query -S "$name" 2>/dev/null || chroot "$root" dpkg-query -S "/usr$name" 2>/dev/null || echo nobody:)
	case $owner in
	systemd:* | systemd-sysv:* | udev:* | dbus:* | openssh-server:* | procps:* | login:* | util-linux:* | kmod:* | init-system-helpers:*) ;;
	*) rm "$link" ;;
	esac
done
