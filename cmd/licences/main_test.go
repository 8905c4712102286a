package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("no go command: ", err)
	}
	golang, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "LICENSE"))
	if err != nil {
		t.Skip("no Go source tree with its licence: ", err)
	}
	const gpl = "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version."
	for _, tc := range []struct {
		name  string
		files map[string]string
		fault string
		found []string
	}{
		{name: "known", files: map[string]string{"LICENSE": string(golang), "NOTICE": "by us"}, found: []string{"BSD-3-Clause"}},
		{name: "none", files: map[string]string{"README.md": string(golang)}, fault: "has no licence file"},
		{name: "code", files: map[string]string{"license.go": "package license"}, fault: "has no licence file"},
		{name: "unknown words", files: map[string]string{"LICENSE.md": "You may look, not touch."}, fault: "no licence that is known"},
		{name: "not to be shipped", files: map[string]string{"COPYING": gpl}, fault: "which is not among"},
		{name: "one of two unknown", files: map[string]string{"LICENSE": string(golang), "LICENSE-EXTRA": "Ask us."}, fault: "no licence that is known"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := module{Path: "example.org/m", Version: "v1.0.0", Dir: t.TempDir(), shipped: true}
			var errs error
			for name, text := range tc.files {
				errs = errors.Join(errs, os.WriteFile(filepath.Join(m.Dir, name), []byte(text), 0o644))
			}
			if errs != nil {
				t.Fatal(errs)
			}
			err := m.read()
			switch {
			case tc.fault == "" && (err != nil || !slices.Equal(m.licences, tc.found) || len(m.files) != len(tc.files)):
				t.Errorf("%v, %v, %v", err, m.licences, m.files)
			case tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)):
				t.Errorf("%v, want %q", err, tc.fault)
			}
		})
	}
}
