package qemu

import (
	"encoding/json"
	"fmt"
	"strconv"

	"refbox/vm"
)

// recipeVersion is part of every template's key: raise it when the machine that
// commandLine describes, or how Prepare brings it to be saved, changes in a way
// that the rest of the key does not show.
const recipeVersion = 2

// userMAC is the address of every machine's isolated user NIC. It is the same
// everywhere: slirp's ARP table is part of a saved state, and a machine resumed
// under another address would be unreachable after its first reset.
const userMAC = "52:54:00:00:00:01"

// launch is everything that the command line of one QEMU process depends on.
type launch struct {
	Spec      vm.MachineSpec
	Accel     string // "tcg" or "kvm"
	CPU       string
	KernelArg string // kernel command line
	Forwards  []forward
	Links     []linkEnd
	RAM       ramMode
	Incoming  bool // wait for a saved state instead of booting
	Layers    int  // read-only disk layers under the overlay: 1 or 2
	// Served takes the overlay from us over a socket (package vm/disk), in place
	// of opening its file.
	Served bool
}

type forward struct{ Host, Guest int }

// linkEnd is one machine's NIC on a private link.
type linkEnd struct{ Link, MAC string }

// ramMode says where the guest's memory lives.
type ramMode int

const (
	ramAnonymous ramMode = iota
	ramShared            // in the template's file, being written to it
	ramPrivate           // a private copy-on-write view of the template's file
)

// descriptors are the numbers under which the QEMU process finds its files. It
// is given descriptors and no paths, so it needs no permission on the folders
// and files of ours, and has none.
type descriptors struct {
	Kernel, Initrd, QMP, Agent, Overlay int
	Layers                              []int // top first; the last is the raw base
	RAM                                 int   // 0 without
	Links                               []int
}

// number assigns the descriptors of l in the order in which open files must be
// handed to the process, starting at 3.
func (l launch) number() descriptors {
	next := 2
	take := func() int { next++; return next }
	d := descriptors{Kernel: take(), Initrd: take(), QMP: take(), Agent: take(), Overlay: take()}
	for range l.Layers {
		d.Layers = append(d.Layers, take())
	}
	if l.RAM != ramAnonymous {
		d.RAM = take()
	}
	for range l.Links {
		d.Links = append(d.Links, take())
	}
	return d
}

// commandLine is QEMU's arguments for l (reference: machines, recipe). Two
// machines with the same arguments but for ports can resume each other's state.
func commandLine(l launch) []string {
	d := l.number()
	args := []string{
		"-name", "refbox-" + l.Spec.Name,
		"-nodefaults", "-no-user-config", "-display", "none",
	}
	machine := "q35,smm=off,vmport=off,sata=off,usb=off"
	if l.RAM != ramAnonymous {
		machine += ",memory-backend=m0"
		share := "off"
		if l.RAM == ramShared {
			share = "on"
		}
		args = append(args, "-object", fmt.Sprintf("memory-backend-file,id=m0,size=%dM,share=%s,mem-path=/proc/self/fd/%d",
			l.Spec.MemoryMiB, share, d.RAM))
	}
	accel := l.Accel
	if accel == "tcg" {
		// A bigger translation buffer costs 95 MiB and gains nothing measurable.
		accel = "tcg,thread=multi,tb-size=128"
	}
	args = append(args,
		"-machine", machine,
		"-accel", accel,
		"-cpu", l.CPU,
		"-smp", strconv.Itoa(l.Spec.VCPUs),
		"-m", strconv.Itoa(l.Spec.MemoryMiB),
		"-kernel", fmt.Sprintf("/proc/self/fd/%d", d.Kernel),
		"-initrd", fmt.Sprintf("/proc/self/fd/%d", d.Initrd),
		"-append", l.KernelArg,
		// Not plain "stdio", which ends QEMU at Ctrl-C, nor "mon:stdio", which
		// would give whoever types the monitor.
		"-chardev", "stdio,id=con,signal=off", "-serial", "chardev:con",
		"-chardev", fmt.Sprintf("socket,id=qmp,fd=%d", d.QMP), "-mon", "chardev=qmp,mode=control",
		"-device", "virtio-serial-pci,id=vs0",
		"-chardev", fmt.Sprintf("socket,id=agent,fd=%d", d.Agent),
		"-device", "virtserialport,id=agent0,chardev=agent,name=refbox.agent,bus=vs0.0",
		"-device", "virtio-rng-pci",
	)
	args = append(args, diskArgs(d, l.Served)...)
	user := "user,id=n0,restrict=on,ipv6=off"
	for _, f := range l.Forwards {
		user += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-:%d", f.Host, f.Guest)
	}
	args = append(args, "-netdev", user, "-device", "virtio-net-pci,netdev=n0,romfile=,mac="+userMAC)
	for i, e := range l.Links {
		args = append(args,
			"-netdev", fmt.Sprintf("stream,id=n%d,server=off,addr.type=fd,addr.str=%d", i+1, d.Links[i]),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=n%d,romfile=,mac=%s", i+1, e.MAC))
	}
	if l.Incoming {
		args = append(args, "-incoming", "defer")
	}
	return append(args,
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
}

// diskArgs is the machine's disk: its own overlay over read-only layers. The graph
// is given in full, so nothing depends on names stored inside the image files.
func diskArgs(d descriptors, served bool) []string {
	var args []string
	for i, fd := range d.Layers {
		args = append(args, "-add-fd", fmt.Sprintf("fd=%d,set=%d", fd, i+1))
	}
	overlay := fdset(9)
	if served {
		overlay = map[string]any{"driver": "nbd", "server": map[string]any{"type": "fd", "str": strconv.Itoa(d.Overlay)}, "discard": "unmap"}
	} else {
		args = append(args, "-add-fd", fmt.Sprintf("fd=%d,set=9", d.Overlay))
	}
	below := ""
	for i := len(d.Layers) - 1; i >= 0; i-- {
		node := map[string]any{
			"node-name": fmt.Sprintf("layer%d", i),
			"driver":    "raw",
			"read-only": true,
			"file":      fdset(i + 1),
		}
		if below != "" {
			node["driver"] = "qcow2"
			node["backing"] = below
		}
		below = node["node-name"].(string)
		args = append(args, "-blockdev", blockdev(node))
	}
	return append(args, "-blockdev", blockdev(map[string]any{
		"node-name":     "disk",
		"driver":        "qcow2",
		"file":          overlay,
		"backing":       below,
		"discard":       "unmap",
		"detect-zeroes": "unmap",
	}), "-device", "virtio-blk-pci,drive=disk")
}

func fdset(n int) map[string]any {
	return map[string]any{"driver": "file", "filename": fmt.Sprintf("/dev/fdset/%d", n), "discard": "unmap"}
}

func blockdev(node map[string]any) string {
	// Encoding a map of strings and booleans cannot fail; keys come out sorted.
	b, _ := json.Marshal(node)
	return string(b)
}
