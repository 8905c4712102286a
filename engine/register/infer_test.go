package register

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The inference finds what the reference pins, and says null where it is free.
func TestInferTheSeed(t *testing.T) {
	e, err := seed(t, false).Facts()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, n := range e.Nodes {
		got["node "+n.ID] = fmt.Sprint(n.Value.Domain, " ", n.Value.Compute)
	}
	for _, x := range e.Targets {
		holder := "-"
		if x.Value.Node != nil {
			holder = *x.Value.Node
		}
		got["target "+x.ID] = x.Value.Domain + " " + holder
	}
	for _, d := range e.DependsOn {
		got["needs "+d.ID] = fmt.Sprint(d.Value)
	}
	for _, l := range e.Leases {
		got["lease "+l.ID] = l.Value
	}
	for want, v := range map[string]string{
		"node home1": "fd-home-rack true", "node nas": "fd-home-rack false", "node vin": "fd-vps true", "node vps1": "vps1 false",
		"target postgres-replica": "fd-vps vin", "target nas-backups": "fd-home-rack nas", "target home1": "fd-home-rack home1", "target gwscli-s3-offsite": "fd-offsite -",
		"needs wireguard-tunnel": "[isp-uplink]", "lease cp-scheduling": "jarvisos-postgres",
	} {
		if got[want] != v {
			t.Errorf("%s is %q, want %q", want, got[want], v)
		}
	}
	if len(e.Acceptances) != 1 || len(e.Health) != 2 || len(e.DependsOn) != 1 {
		t.Errorf("%d acceptances, %d health, needs %v", len(e.Acceptances), len(e.Health), e.DependsOn)
	}
}

// What cannot be inferred is said, with its place and the remedy.
func TestInferRefuses(t *testing.T) {
	data, _ := Starter("toml")
	doc, err := parse(t, "starter.toml", data).Derive(Settings{On: "2026-12-01"})
	if err != nil {
		t.Fatal(err)
	}
	doc.Estate = nil
	for name, c := range map[string]struct {
		spoil func(map[string]any)
		want  string
	}{
		"a domain that is a number": {func(m map[string]any) { m["homeDomain"] = 3 }, "r.json:1:"},
		"no home":                   {func(m map[string]any) { m["copies"].([]any)[0].(map[string]any)["domain"] = true }, "stores[0].copies[0].domain: is a boolean, so the estate cannot be inferred from it"},
		"no domain":                 {func(m map[string]any) { delete(m["copies"].([]any)[0].(map[string]any), "domain") }, "stores[0].copies[0].domain: is missing, so the target's domain cannot be inferred"},
		"two domains":               {func(m map[string]any) { m["copies"].([]any)[1].(map[string]any)["target"] = "replica-vps" }, `stores[0].copies[1].domain: is "home", but stores[0].copies[0].domain puts the same target in "provider"`},
		"a status that is a list": {func(m map[string]any) {
			m["entityId"], m["unmonitored"], m["status"] = "e", nil, []any{}
		}, "stores[0].status: is a list"},
	} {
		raw := decoded(t, doc.Encode())
		c.spoil(raw["stores"].([]any)[0].(map[string]any))
		_, err := parse(t, "r.json", encoded(t, raw)).Derive(Settings{On: "2026-12-01"})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
	// Untouched it can be inferred, and derives the same findings.
	again, err := parse(t, "r.json", doc.Encode()).Derive(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(doc.Findings)
	b, _ := json.Marshal(again.Findings)
	if string(a) != string(b) {
		t.Errorf("inferred otherwise:\n%s\n%s", a, b)
	}
}

// Whatever a file holds, reading and deriving it ends in a register or in
// problems with places, never in a panic.
func FuzzDerive(f *testing.F) {
	for _, syntax := range []string{"toml", "yaml"} {
		data, _ := Starter(syntax)
		f.Add("f."+syntax, data)
	}
	data, _ := Starter("toml")
	src, err := Parse("f.toml", data)
	if err != nil {
		f.Fatal(err)
	}
	doc, err := src.Derive(Settings{On: "2026-12-01"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("f.json", doc.Encode())
	doc.Estate = nil
	f.Add("f.json", doc.Encode())
	f.Fuzz(func(t *testing.T, file string, data []byte) {
		src, err := Parse(file, data)
		if err != nil {
			return
		}
		if _, err := src.Check(Settings{Today: "2026-12-01"}); err != nil {
			return
		}
		if _, err := src.Plan(Settings{Today: "2026-12-01"}); err != nil {
			t.Fatal(err)
		}
	})
}
