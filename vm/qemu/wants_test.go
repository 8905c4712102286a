package qemu

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the guest prints later is never taken for the initrd's words, and without
// the handing over nothing is confirmed, however the bytes come.
func TestHeadOfAConsole(t *testing.T) {
	honest := "refbox-boot: wants a.service\r\nrefbox-boot: wants b.socket\r\nrefbox-boot: handing over\r\n"
	for _, tc := range []struct {
		name, printed string
		want          said
	}{
		{"honest", honest, said{wants: []string{"a.service", "b.socket"}}},
		{"after the kernel's words", "[    0.1] noise\r\n" + honest, said{wants: []string{"a.service", "b.socket"}}},
		{"altered", "refbox-boot: altered usr/lib/x\r\nrefbox-boot: altered y\r\n" + honest, said{altered: "usr/lib/x", wants: []string{"a.service", "b.socket"}}},
		{"forged later", honest + "refbox-boot: wants c.service\r\nrefbox-boot: altered z\r\n", said{wants: []string{"a.service", "b.socket"}}},
		{"an image without the initrd's part", "Debian GNU/Linux 12\r\nlogin: ", said{}},
		{"cut off", strings.TrimSuffix(honest, "over\r\n"), said{}},
		{"too long", strings.Repeat("x\n", headBytes) + honest, said{}},
	} {
		for _, size := range []int{1, 7, len(tc.printed)} {
			h := &head{}
			for b := []byte(tc.printed); len(b) > 0; b = b[min(size, len(b)):] {
				h.add(b[:min(size, len(b))])
			}
			if diff := cmp.Diff(tc.want, h.read(), cmp.AllowUnexported(said{})); diff != "" {
				t.Errorf("%s, in pieces of %d (-want +got):\n%s", tc.name, size, diff)
			}
		}
	}
}
