package fault

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		f    Fault
		want string // of the error; "" none
	}{
		{Fault{Kind: Freeze, Machine: "host"}, ""},
		{Fault{Kind: ServiceStop, Machine: "host", Unit: "db.service"}, ""},
		{Fault{Kind: ProcessKill, Machine: "host", Unit: "db.service", Port: 5432}, ""},
		{Fault{Kind: SlowLink, Machine: "a", Link: "l", Peer: "b", DelayMS: 200}, ""},
		{Fault{Kind: ClockJump, Machine: "host", JumpMS: -60_000}, ""},
		{Fault{Kind: MemoryPressure, Machine: "host", MiB: 64}, ""},
		{Fault{Kind: ProcessKill, Machine: "host", Unit: "db.service", PIDFile: "/run/db.pid"}, ""},
		{Fault{Kind: Switchover, Machine: "a", Procedure: "/opt/x/switch", Port: 8008, Path: "/primary"}, ""},
		{Fault{Kind: BadWrite, Machine: "a", Procedure: "/opt/x/import", Port: 8081, Path: "/prices"}, ""},
		{Fault{Kind: ConnectionReset, Machine: "a", Procedure: "/opt/x/reset", Port: 5000}, ""},
		{Fault{Kind: ServiceStop, Machine: "host", Unit: "db.service", PIDFile: "/run/db.pid"}, "service-stop has no pid_file"},
		{Fault{Kind: ProcessKill, Machine: "host", Unit: "db.service", PIDFile: "run/db.pid"}, "pid_file"},
		{Fault{Kind: Switchover, Machine: "a", Port: 8008, Path: "/primary"}, "procedure"},
		{Fault{Kind: Switchover, Machine: "a", Procedure: "/opt/x; reboot", Port: 8008, Path: "/primary"}, "procedure"},
		{Fault{Kind: Switchover, Machine: "a", Procedure: "/opt/x", Path: "/primary"}, "port"},
		{Fault{Kind: BadWrite, Machine: "a", Procedure: "/opt/x", Port: 80}, "path"},
		{Fault{Kind: ConnectionReset, Machine: "a", Procedure: "/opt/x", Port: 80, Path: "/x"}, "connection-reset has no path"},
		{Fault{Kind: Freeze, Machine: "a", Procedure: "/opt/x"}, "freeze has no procedure"},
		{Fault{Machine: "host"}, "want one of"},
		{Fault{Kind: "meteor", Machine: "host"}, "meteor"},
		{Fault{Kind: Freeze}, "names no machine"},
		{Fault{Kind: Freeze, Machine: "host", Unit: "x.service"}, "freeze has no unit"},
		{Fault{Kind: ServiceStop, Machine: "host"}, "unit"},
		{Fault{Kind: ServiceStop, Machine: "host", Unit: "x; reboot"}, "unit"},
		{Fault{Kind: ProcessKill, Machine: "host", Unit: "x.service", Port: 70000}, "port"},
		{Fault{Kind: OneWay, Machine: "a", Link: "l"}, "peer"},
		{Fault{Kind: OneWay, Machine: "a", Link: "l", Peer: "a"}, "peer"},
		{Fault{Kind: SlowLink, Machine: "a", Link: "l", Peer: "b"}, "delay_ms, loss_percent"},
		{Fault{Kind: SlowLink, Machine: "a", Link: "l", Peer: "b", LossPercent: 100}, "loss_percent"},
		{Fault{Kind: ClockJump, Machine: "host", JumpMS: 10}, "jump_ms"},
		{Fault{Kind: MemoryPressure, Machine: "host"}, "mib"},
	} {
		err := c.f.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.f, err, c.want)
		}
	}
}

// Every kind says what it does, who confirms it and how it is undone.
func TestDescribe(t *testing.T) {
	for _, k := range append(Kinds(), Procedures()...) {
		w := Fault{Kind: k}.Describe()
		if w.Does == "" || w.Witness == "" || w.Undo == "" {
			t.Errorf("%s: %+v", k, w)
		}
	}
	f := Fault{Kind: ServiceStop, Unit: "x.service"}
	inside := f.Describe()
	f.Port = 80
	if outside := f.Describe(); outside.Witness == inside.Witness || outside.Forgeable != "" || inside.Forgeable == "" {
		t.Errorf("with a port %+v, without %+v", outside, inside)
	}
	// With a port a kill is seen from the host and told by the guest: both are said.
	for _, file := range []string{"", "/run/x.pid"} {
		w := Fault{Kind: ProcessKill, Unit: "x.service", PIDFile: file, Port: 80}.Describe()
		if !strings.HasPrefix(w.Witness, "the host: ") || w.Forgeable != forgedKill || strings.Contains(w.Does+w.Witness, "main process") == (file != "") {
			t.Errorf("%q: %+v", file, w)
		}
	}
	if len(Kinds())+len(Procedures()) != len(methods) {
		t.Error("a kind is not offered")
	}
}

func TestTargetAndParams(t *testing.T) {
	f := Fault{Kind: OneWay, Machine: "a", Link: "l", Peer: "b"}
	if f.Target() != "a→b" || string(f.Params()) != `{"link":"l","peer":"b"}` {
		t.Errorf("%s %s", f.Target(), f.Params())
	}
	var back Fault
	b, _ := json.Marshal(f)
	if err := json.Unmarshal(b, &back); err != nil || back != f {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestParsePing(t *testing.T) {
	for out, want := range map[string]pinged{
		"PING 10.81.0.10 (10.81.0.10) 56(84) bytes of data.\n\n--- 10.81.0.10 ping statistics ---\n20 packets transmitted, 9 received, 55% packet loss, time 1053ms\nrtt min/avg/max/mdev = 200.1/204.5/210.0/3.2 ms\n": {20, 9, 204500 * time.Microsecond},
		"2 packets transmitted, 0 received, 100% packet loss, time 210ms\n\n":                 {2, 0, 0},
		"2 packets transmitted, 0 received, +2 errors, 100% packet loss, time 10ms\npipe 2\n": {2, 0, 0},
	} {
		if got, ok := parsePing(out); !ok || !cmp.Equal(got, want, cmp.AllowUnexported(pinged{})) {
			t.Errorf("%q: %+v, %v", out, got, ok)
		}
	}
	for _, bad := range []string{"", "ping: unknown host", "-1 packets transmitted, 0 received", "2 packets transmitted, 3 received", "x packets transmitted, 1 received"} {
		if got, ok := parsePing(bad); ok {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

// What a boot or a thaw ends is known of every kind, so that none is said to last which
// does not. What lies on the disk, or outside the machine, outlasts both.
func TestUndoes(t *testing.T) {
	boots := []Kind{PowerCut, HardReset, CleanReboot, DiskError}
	want := map[Kind][]Kind{
		ClockJump: append([]Kind{Freeze}, boots...), ServiceStop: boots, MemoryPressure: boots,
	}
	for _, k := range Kinds() {
		for _, other := range Kinds() {
			if got := k.Undoes(other); got != slices.Contains(want[other], k) {
				t.Errorf("%s undoes %s: %t", k, other, got)
			}
		}
	}
}
