package probe

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// rec is a record as it is read from a file.
func rec(t *testing.T, at uint64, text string) Record {
	t.Helper()
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	r.Machine, r.AtMS, r.TookMS = "host", at, 1
	return r
}

func TestReplay(t *testing.T) {
	get := func(at uint64, path, body string) Record {
		return rec(t, at, `{"call":"http","request":{"method":"GET","url":"`+path+`","port":80},"response":{"status":200,"body":"`+body+`","bytes":`+num(len(body))+`}}`)
	}
	lost := func(at uint64) Record {
		return rec(t, at, `{"call":"http","request":{"method":"GET","url":"/c","port":80},"response":{"error":"timeout"}}`)
	}
	lasting := func(r Record, ms uint64) Record { r.TookMS = ms; return r }
	restart := rec(t, 50, `{"call":"guest.systemctl","request":{"argv":["systemctl","--no-ask-password","restart","--","x.service"]},"response":{"exit":0,"stdout":"","stderr":""}}`)
	for name, x := range map[string]struct {
		verify  string
		records []Record
		gaveUp  bool
		pass    bool
		want    string // of the error
		lacks   bool
	}{
		"an answer": {verify: `require(seat.http("GET", "/a").body == "1", "no")`, records: []Record{get(1, "/a", "1")}, pass: true},
		"a refusal": {verify: `require(seat.http("GET", "/a").body == "2", "not two")`, records: []Record{get(1, "/a", "1")}, want: "not two"},
		"in their order": {verify: `require(seat.http("GET", "/a").body + seat.http("GET", "/b").body + seat.http("GET", "/a").body == "132", "no")`,
			records: []Record{get(1, "/a", "1"), get(2, "/a", "2"), get(3, "/b", "3")}, pass: true},
		"at once, in their order": {verify: `require("".join([r.body for r in seat.get_all(["/a", "/a", "/b"])]) == "123", "no")`,
			records: []Record{get(1, "/a", "1"), get(1, "/a", "2"), get(1, "/b", "3")}, pass: true},
		"never asked":     {verify: `seat.http("GET", "/c")`, records: []Record{get(1, "/a", "1")}, want: "was not recorded", lacks: true},
		"asked too often": {verify: `[seat.http("GET", "/a") for i in range(2)]`, records: []Record{get(1, "/a", "1")}, want: "less often", lacks: true},
		"only before a change": {verify: "seat.guest.systemctl(\"restart\", \"x.service\")\n    seat.http(\"GET\", \"/a\")",
			records: []Record{get(1, "/a", "1"), restart}, want: "before or after something else changed", lacks: true},
		"before and after": {verify: "a = seat.http(\"GET\", \"/a\").body\n    seat.guest.systemctl(\"restart\", \"x.service\")\n    require(a + seat.http(\"GET\", \"/a\").body == \"12\", \"no\")",
			records: []Record{get(1, "/a", "1"), restart, get(60, "/a", "2")}, pass: true},
		"a cut answer": {verify: `seat.http("GET", "/a")`, records: []Record{rec(t, 1, `{"call":"http","request":{"method":"GET","url":"/a","port":80},"response":{"status":200,"body":"abc…","bytes":5000}}`)},
			want: "not kept whole", lacks: true},
		"a failed call": {verify: `seat.guest.read("/x")`, records: []Record{rec(t, 1, `{"call":"guest.read","request":{"path":"/x"},"response":{"error":"the guest does not answer"},"error":"contract"}`)},
			want: "the guest does not answer"},
		"cut off": {verify: `seat.guest.read("/x")`, records: []Record{rec(t, 1, `{"call":"guest.read","request":{"path":"/x"},"response":{"error":"context canceled"},"error":"timeout"}`)},
			want: ErrCutOff.Error()},
		"no file":   {verify: `require(seat.guest.read("/x") == None, "there")`, records: []Record{rec(t, 1, `{"call":"guest.read","request":{"path":"/x"},"response":{"exists":false}}`)}, pass: true},
		"listening": {verify: `require(seat.guest.listening(80) and not seat.guest.listening(81), "no")`, records: []Record{rec(t, 1, `{"call":"guest.listeners","response":{"ports":[22,80]}}`), rec(t, 2, `{"call":"guest.listeners","response":{"ports":[22,80]}}`)}, pass: true},
		"listeners": {verify: `seat.guest.listeners()`, records: []Record{rec(t, 1, `{"call":"guest.listeners","response":{"ports":[22]}}`)}, want: "only the ports", lacks: true},
		"a port":    {verify: `require(seat.port(9) == "silent" and seat.power() == "on" and seat.console_contains("x"), "no")`, records: []Record{rec(t, 1, `{"call":"port","request":{"port":9},"response":{"state":"silent"}}`), rec(t, 2, `{"call":"power","response":{"power":"on"}}`), rec(t, 3, `{"call":"console","request":{"contains":"x"},"response":{"found":true}}`)}, pass: true},
		"PostgreSQL's port": {verify: `require(seat.port(9, postgres = True) == "open" and seat.port(9) == "closed", "no")`, records: []Record{
			rec(t, 1, `{"call":"port","request":{"port":9},"response":{"state":"closed"}}`), rec(t, 2, `{"call":"port","request":{"port":9,"postgres":true},"response":{"state":"open"}}`)}, pass: true},
		"the canary": {verify: `c = seat.canary(); require(c.lost == 2 and c.acknowledged == 9 and c.down and c.outage_ms == 700, "no")`, records: []Record{
			rec(t, 1, `{"call":"canary","response":{"writes":12,"acknowledged":9,"failed":3,"indeterminate":0,"lost":2,"unread":0,"outages":1,"outage_ms":700,"longest_ms":700,"down":true}}`)}, pass: true},
		"how long it took": {verify: `require([r.took for r in seat.get_all(["/a", "/b"])] == [0.25, 1.5], "no")
    require(seat.http("GET", "/c").took == 5.0 and seat.http("GET", "/c").error == "timeout", "no")`, records: []Record{
			lasting(get(1, "/a", "1"), 250), lasting(get(1, "/b", "2"), 1500), lasting(lost(9000), 5000), lasting(lost(15000), 5000)}, pass: true},
		"a unit": {verify: `require(seat.guest.unit("x").pid == 7 and seat.guest.unit("x").active == "active", "no")`, records: []Record{rec(t, 1, `{"call":"guest.unit","request":{"unit":"x"},"response":{"pid":7,"active":"active"}}`), rec(t, 1, `{"call":"guest.unit","request":{"unit":"x"},"response":{"pid":7,"active":"active"}}`)}, pass: true},
		"eventually": {verify: `eventually(lambda: require(seat.http("GET", "/a").body == "3", "no"), timeout = 5)`,
			records: []Record{get(1, "/a", "1"), get(100, "/a", "2"), get(200, "/a", "3")}, pass: true},
		"eventually given up": {verify: `eventually(lambda: require(seat.http("GET", "/a").body == "3", "not three"), timeout = 5)`,
			records: []Record{get(1, "/a", "1"), get(100, "/a", "2")}, gaveUp: true, want: "not three"},
		"eventually would have gone on": {verify: `eventually(lambda: require(seat.http("GET", "/a").body == "3", "not three"), timeout = 5)`,
			records: []Record{get(1, "/a", "1"), get(100, "/a", "2")}, want: "gone on asking", lacks: true},
		"eventually out of time": {verify: `eventually(lambda: require(seat.http("GET", "/a").body == "3", "not three"), timeout = 5)`,
			records: []Record{get(1, "/a", "1"), get(5100, "/a", "2"), get(5200, "/a", "3")}, want: "not three"},
		"eventually asks nothing": {verify: `eventually(lambda: require(False, "never"), timeout = 5)`, want: "never"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := loadStarlark("t.star", []byte("def verify(seat):\n    "+x.verify+"\n    return {}\n"))
			if err != nil {
				t.Fatal(err)
			}
			p := NewReplay(ReplayConfig{Territory: "one", ServicePort: 80, Records: x.records, GaveUp: x.gaveUp})
			_, err = v.Verify(t.Context(), p.Attempt("m", 1, nil))
			var lacks *Insufficient
			if x.pass != (err == nil) || err != nil && !strings.Contains(err.Error(), x.want) || errors.As(err, &lacks) != x.lacks {
				t.Errorf("got %v", err)
			}
			if x.pass && p.Left() != 0 {
				t.Errorf("%d records were not used", p.Left())
			}
		})
	}
}

func num(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}
