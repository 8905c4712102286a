package run

import (
	"testing"

	"refbox/engine/arena"
	"refbox/engine/heat"
	"refbox/engine/season"
)

// A draw whose key was made in an earlier form is held against that form.
func TestAnEarlierDrawIsRecognised(t *testing.T) {
	pkg, err := arena.Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	hashes, err := pkg.Hashes()
	if err != nil {
		t.Fatal(err)
	}
	before, err := heat.KeyBefore(pkg)
	if err != nil {
		t.Fatal(err)
	}
	now, err := heat.Key(pkg)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := heat.Parts(pkg)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]season.Arena{
		before: {Manifest: "primary-failover", CompatibilityKey: before, Hashes: hashes},
		now:    {Manifest: "primary-failover", CompatibilityKey: now, Hashes: parts},
	} {
		key, got, err := Key(x, season.Rules{})
		if err != nil || key != name || season.Differences(x.Hashes, got) != "" {
			t.Errorf("%s %v: %v%s", key, err, got, season.Differences(x.Hashes, got))
		}
	}
}
