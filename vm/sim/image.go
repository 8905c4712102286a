package sim

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"refbox/vm"
	"refbox/vm/sim/internal/memfs"
)

const (
	agentUnit = "refbox-agent.service"
	agentPath = "/usr/lib/refbox/refbox-agent"
	sshdPath  = "/usr/sbin/sshd"
)

const agentText = `[Unit]
Description=refbox guest agent

[Service]
ExecStart=` + agentPath + `
Restart=no

[Install]
WantedBy=multi-user.target
`

const sshText = `[Unit]
Description=OpenBSD Secure Shell server
After=network.target

[Service]
Type=notify
ExecStart=` + sshdPath + ` -D

[Install]
WantedBy=multi-user.target
`

// system is the root file system that every image begins with.
var system = sync.OnceValues(func() (memfs.Snapshot, error) {
	f := memfs.New(memfs.Snapshot{}, 1<<30)
	var first error
	do := func(err error) {
		if err != nil && first == nil {
			first = err
		}
	}
	for _, dir := range []string{"/etc/systemd/system/multi-user.target.wants", "/etc/ssh", "/etc/default", "/root/.ssh", "/home", "/opt", "/srv", "/mnt",
		"/tmp", "/run", "/var/lib", "/var/log", "/var/tmp", "/usr/bin", "/usr/sbin", "/usr/lib/systemd/system", "/usr/lib/refbox", "/usr/local/bin",
		"/usr/local/sbin", "/usr/share", "/dev", "/proc/sys/kernel/random", "/sys", "/boot"} {
		do(f.MkdirAll(dir, 0o755))
	}
	for _, dir := range []string{"bin", "sbin", "lib"} {
		do(f.Symlink("usr/"+dir, "/"+dir))
	}
	for _, name := range sortedKeys(tools) {
		do(f.WriteFile("/usr/bin/"+name, []byte(toolMagic+name+"\n"), 0o755))
	}
	for _, name := range []string{"reboot", "poweroff", "halt", "shutdown"} {
		do(f.Rename("/usr/bin/"+name, "/usr/sbin/"+name))
	}
	device := fs.ModeDevice | fs.ModeCharDevice | 0o666
	for name, key := range map[string]string{"null": "null", "zero": "zero", "random": "random", "urandom": "random", "tty": "tty", "console": "console", "ttyS0": "console"} {
		do(f.Special("/dev/"+name, key, device))
	}
	for name, key := range map[string]string{"sys/kernel/random/boot_id": "boot_id", "sys/kernel/random/uuid": "uuid", "sys/kernel/hostname": "hostname",
		"uptime": "uptime", "loadavg": "loadavg", "meminfo": "meminfo", "cpuinfo": "cpuinfo", "version": "version", "cmdline": "cmdline", "mounts": "mounts"} {
		do(f.Special("/proc/"+name, key, 0o444))
	}
	for name, text := range map[string]string{
		"/etc/passwd":                          "root:x:0:0:root:/root:/bin/bash\n",
		"/etc/group":                           "root:x:0:\n",
		"/etc/os-release":                      "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_ID=\"12\"\n",
		"/etc/hostname":                        "localhost\n",
		"/etc/hosts":                           "127.0.0.1\tlocalhost\n",
		"/usr/lib/systemd/system/" + agentUnit: agentText,
		"/usr/lib/systemd/system/ssh.service":  sshText,
	} {
		do(f.WriteFile(name, []byte(text), 0o644))
	}
	do(f.WriteFile(agentPath, []byte(programMagic+"agent\n"), 0o755))
	do(f.WriteFile(sshdPath, []byte(programMagic+"sshd\n"), 0o755))
	for _, unit := range []string{agentUnit, "ssh.service"} {
		do(f.Symlink("/usr/lib/systemd/system/"+unit, "/etc/systemd/system/multi-user.target.wants/"+unit))
	}
	f.Sync()
	return f.Snapshot(), first
})

// pristine is a file as every image has it.
func pristine(name string) ([]byte, error) {
	base, err := system()
	if err != nil {
		return nil, err
	}
	return memfs.New(base, 1<<30).ReadFile(name)
}

// baseImage is the disk of a machine before its first boot: the system with the
// spec's files laid over it.
func baseImage(m vm.MachineSpec) (memfs.Snapshot, error) {
	base, err := system()
	if err != nil {
		return memfs.Snapshot{}, fmt.Errorf("simulated system: %w", err)
	}
	limit := int64(m.DiskMiB) << 20
	if limit <= 0 {
		limit = 2048 << 20
	}
	f := memfs.New(base, limit)
	if m.Files == nil {
		return f.Snapshot(), nil
	}
	err = fs.WalkDir(m.Files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return f.MkdirAll("/"+name, 0o755)
		}
		data, err := fs.ReadFile(m.Files, name)
		if err != nil {
			return err
		}
		perm := fs.FileMode(0o644)
		dir := path.Base(path.Dir(name))
		if dir == "bin" || dir == "sbin" || bytes.HasPrefix(data, []byte("#!")) {
			perm = 0o755
		}
		return f.WriteFile("/"+name, data, perm)
	})
	if err != nil {
		return memfs.Snapshot{}, fmt.Errorf("lay files: %w", err)
	}
	return f.Snapshot(), nil
}

// shadowLine is root's line of /etc/shadow.
func shadowLine(password string) (string, error) {
	if strings.ContainsAny(password, "\n\x00") {
		return "", fmt.Errorf("password holds a line break or NUL")
	}
	if password == "" {
		return "root:*:19000:0:99999:7:::\n", nil // no password opens it
	}
	salt := make([]byte, 12)
	_, _ = rand.Read(salt) // never fails
	return "root:$sim$" + hex.EncodeToString(salt) + "$" + hashPassword(salt, password) + ":19000:0:99999:7:::\n", nil
}

func hashPassword(salt []byte, password string) string {
	h := hmac.New(sha256.New, salt)
	h.Write([]byte(password))
	return hex.EncodeToString(h.Sum(nil))
}

// checkPassword compares with what /etc/shadow says now.
func (b *boot) checkPassword(user, password string) bool {
	data, err := b.fs.ReadFile("/etc/shadow")
	if err != nil || user != "root" {
		return false
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Split(line, ":")
		if f[0] != user || len(f) < 2 {
			continue
		}
		parts := strings.Split(f[1], "$")
		if len(parts) != 4 || parts[1] != "sim" {
			return false
		}
		salt, err := hex.DecodeString(parts[2])
		return err == nil && hmac.Equal([]byte(parts[3]), []byte(hashPassword(salt, password)))
	}
	return false
}

// builtinPrograms are what every machine has beside its tools, by the name in
// their file.
var builtinPrograms map[string]Program

func init() { builtinPrograms = map[string]Program{"agent": runAgent, "sshd": runSSHD} } // as tools
