package recording

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"refbox/engine/event"
)

func TestDiskFull(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no small disk can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(disk, "heat")
	w := startHeat(t, dir)
	console, err := w.Console("one", "host")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(0, event.MatchStateChanged{From: "preparing", To: "running"}); err != nil {
		t.Fatal(err)
	}
	written := 1
	var full error
	for full == nil && written < 1000 {
		console.Write([]byte("still printing\r\n"))
		if _, full = w.Append(uint64(written), event.MilestoneFailed{Territory: "one", Milestone: "a", Detail: strings.Repeat("x", 2000)}); full == nil {
			written++
		}
	}
	if !errors.Is(full, syscall.ENOSPC) || !strings.HasPrefix(full.Error(), "disk full: ") || !strings.Contains(full.Error(), dir) {
		t.Fatalf("after %d events: %v", written, full)
	}
	if _, _, err := w.Evidence("one", "a", 1, strings.Repeat("x", 5000)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("evidence: %v", err)
	}
	if _, err := w.Append(9, event.OperatorNote{}); !errors.Is(err, full) || w.Err() == nil {
		t.Errorf("the error did not stick: %v", err)
	}
	if err := w.Finish(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("finished: %v", err)
	}
	report, err := verifyFolder(t.Context(), dir)
	if err != nil || report.Breaks() != 0 || report.Events != written || report.Stopped == "" {
		t.Errorf("%d written, %+v, %v", written, report, err)
	}
	for _, f := range report.Findings {
		if f.Code == "torn_tail" || f.Code == "broken_line" {
			t.Errorf("%+v", f)
		}
	}
}
