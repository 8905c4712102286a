package heat

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"refbox/engine/recording"
	"refbox/vm/vmtest"
)

// A disk that fills up ends the heat, and says so; the folder still opens.
func TestDiskFull(t *testing.T) {
	disk := t.TempDir()
	vmtest.SmallDisk(t, disk, "200k")
	dir := filepath.Join(disk, "heat")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	res, err := Run(ctx, Config{Package: pkg(t, "while true; do echo noise; done\n", idle, idle), Driver: driver(), Dir: dir, Runtime: runtimeFolder(t)})
	if err == nil || !res.Aborted || !strings.Contains(err.Error(), "no space left") && !strings.Contains(err.Error(), "disk full") {
		t.Fatalf("%+v after %v: %v", res, time.Since(began), err)
	}
	r, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Len() < 10 {
		t.Errorf("%d events could be read", r.Len())
	}
}
