package probe

import (
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkVerification compares the processor time of one verification (three
// requests to the public port, two files in the guest) with that of bash and curl
// making the same three requests; the ssh sessions for the two files are left out
// there, which favours bash. Ours counts the test's own server too.
func BenchmarkVerification(b *testing.B) {
	r := newRig(b, func(w http.ResponseWriter, q *http.Request) { w.Write([]byte("ready")) })
	r.g.files["/a"], r.g.files["/b"] = "x", "y"
	v := load(b, `
def verify(seat):
    for path in ["/health", "/role", "/records/a"]:
        r = seat.http("GET", path)
        require(r.status == 200 and r.body == "ready", "GET %s: %d" % (path, r.status))
    require(seat.guest.read("/a") == "x", "a")
    require(seat.guest.read("/b") == "y", "b")
    return {"ok": True}
`)
	b.Run("refbox", func(b *testing.B) {
		before := cpu(syscall.RUSAGE_SELF)
		for b.Loop() {
			if _, err := v.Verify(b.Context(), r.Attempt("m", 1, nil)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((cpu(syscall.RUSAGE_SELF)-before).Microseconds())/float64(b.N), "cpu-µs/op")
	})
	b.Run("bash-curl", func(b *testing.B) {
		for _, tool := range []string{"bash", "curl"} {
			if _, err := exec.LookPath(tool); err != nil {
				b.Skipf("this host has no %s", tool)
			}
		}
		script := strings.ReplaceAll(`set -eu
for path in /health /role /records/a; do
	[ "$(curl --silent --show-error --fail --max-time 2 "http://ADDR$path")" = ready ]
done`, "ADDR", r.m.addrs[8080])
		before := cpu(syscall.RUSAGE_CHILDREN)
		for b.Loop() {
			if out, err := exec.Command("bash", "-c", script).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
		b.ReportMetric(float64((cpu(syscall.RUSAGE_CHILDREN)-before).Microseconds())/float64(b.N), "cpu-µs/op")
	})
}

func cpu(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
