package transcript

import (
	"path"
	"strings"

	"refbox/engine/transcript/skim"
)

// facet reads a small JSON file of a trial for what it says of the trial: no
// steps but instants.
type facet struct {
	*document
}

func openFacet(x *index, st *store, name string, read func(r *skim.Reader)) (importer, error) {
	d, err := newDocument(x, st, name)
	if err != nil {
		return nil, err
	}
	d.parse = read
	return &facet{d}, nil
}

func (f *facet) full(e entry, limit int) (Full, error) {
	var full Full
	b := newBodies(&full, e, limit)
	if e.tool != 0 {
		f.x.mu.RLock()
		b.say(PartMessage, "", f.x.tools[e.tool])
		f.x.mu.RUnlock()
	}
	if e.length > 0 {
		b.json(reader(f.src, e.off, e.length), PartData, "")
	}
	return full, nil
}

// instant adds a named moment; its words are kept as a name.
func (x *index) instant(kind Kind, words string, at int64, o Outcome, off, length int64) {
	e := step(kind, System, off, length)
	e.at, e.outcome, e.tool = at, o, x.tool(words)
	x.add(e)
}

// trial is what a result file of Harbor or Terminal-Bench says.
type trial struct {
	x        *index
	use      usageFigures
	times    []timed
	verified bool
	failure  string
}

type timed struct {
	words  string
	at     int64
	off, n int64
}

func (t *trial) time(r *skim.Reader, words string) {
	r.Kind()
	off := r.Offset()
	s := short(r, 64)
	ms, zoned, ok := parseTime(s)
	if !ok {
		return
	}
	if !zoned {
		t.x.setClock(Naive)
	}
	t.times = append(t.times, timed{words, ms, off, r.Offset() - off})
}

// openHarbor reads a trial's result file with the trajectory in agent/ and the
// reward in verifier/, when it lies in a trial's folder.
func openHarbor(x *index, st *store, name string) (importer, error) {
	c := &composite{x: x}
	t := &trial{x: x, use: noUsage}
	x.setClock(Absolute)
	dir := path.Dir(name)
	if err := c.part(name, func() (importer, error) { return openFacet(x, st, name, t.harbor) }); err != nil {
		return nil, err
	}
	t.reward(st, path.Join(dir, "verifier"))
	agent := ""
	for _, at := range []string{"agent/trajectory.json", "agent"} {
		if at = path.Join(dir, at); st.isFile(at) {
			agent = at
		} else if st.isDir(at) && agent == "" {
			agent = recognised(st, at, 2)
		}
		if agent != "" {
			break
		}
	}
	if agent == "" {
		x.note(Incomplete, "no-trajectory", -1, 0, 0, 0, "the trial has no trajectory")
		return c, nil
	}
	t.beside(c, st, agent)
	x.describe(func(i *Info) { i.Format = "harbor" })
	return c, nil
}

// beside adds a record that a trial names; one that cannot be read is a finding.
func (t *trial) beside(c *composite, st *store, name string) {
	b, err := st.open(name)
	if err == nil {
		var format string
		if format, err = sniff(b, sizeOf(b)); err == nil && openers[format] != nil && !strings.HasPrefix(format, "harbor") && format != "terminal-bench" {
			err = c.part(name, func() (importer, error) { return openers[format](t.x, st, name) })
		}
		b.Close()
	}
	if err != nil {
		t.x.find(Finding{Severity: Break, Trouble: Skipped, Code: "unreadable-trajectory", File: name, Step: -1, Text: name + ": " + err.Error()})
	}
}

// recognised finds the first record of a known format in a folder.
func recognised(st *store, dir string, depth int) string {
	for i, name := range st.list(dir) {
		if i > 500 {
			return ""
		}
		full := path.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if depth > 0 {
				if found := recognised(st, full, depth-1); found != "" {
					return found
				}
			}
			continue
		}
		b, err := st.open(full)
		if err != nil {
			continue
		}
		format, err := sniff(b, sizeOf(b))
		b.Close()
		if err == nil && openers[format] != nil {
			return full
		}
	}
	return ""
}

func (t *trial) harbor(r *skim.Reader) {
	rewarded := false
	for key := range r.Keys() {
		switch key {
		case "id":
			t.x.label(&t.x.info.Session, short(r, 200))
		case "task_name":
			t.x.label(&t.x.info.Task, short(r, 200))
		case "trial_name", "source", "task_checksum":
			t.x.fact(key, short(r, 200))
		case "agent_info":
			t.agentInfo(r)
		case "agent_result":
			for key := range r.Keys() {
				switch key {
				case "n_input_tokens":
					t.use.in = count(r)
				case "n_cache_tokens":
					t.use.cacheRead = count(r)
				case "n_output_tokens":
					t.use.out = count(r)
				case "cost_usd":
					t.use.cost = microUSD(r.Float())
				}
			}
		case "verifier_result":
			if r.Kind() != skim.Object {
				continue
			}
			for key := range r.Keys() {
				if key == "rewards" {
					for name := range r.Keys() {
						rewarded = true
						t.x.fact("reward."+name, short(r, 64))
					}
				}
			}
		case "exception_info":
			t.exception(r)
		case "started_at":
			t.time(r, "trial started")
		case "finished_at":
			if r.Kind() == skim.Null {
				t.x.note(Incomplete, "unfinished", -1, 0, r.Offset(), 0, "the trial has no end: it was running, or was killed")
			}
			t.time(r, "trial finished")
		case "environment_setup", "agent_setup", "agent_execution", "verifier":
			for k := range r.Keys() {
				switch k {
				case "started_at", "finished_at":
					t.time(r, strings.ReplaceAll(key, "_", " ")+" "+strings.TrimSuffix(k, "_at"))
				}
			}
		}
	}
	t.verified = t.verified || rewarded
	if r.Err() != nil {
		return
	}
	t.end()
	if !t.verified {
		t.x.note(Incomplete, "no-evidence", -1, 0, 0, 0, "no reward was recorded: that is no evidence, not a loss")
	}
	if !t.use.empty() {
		t.x.give(t.use, "agent_result of the trial", "agent_result of the trial")
	}
}

func (t *trial) agentInfo(r *skim.Reader) {
	for key := range r.Keys() {
		switch key {
		case "name":
			t.x.label(&t.x.info.Harness, short(r, 200))
		case "version":
			t.x.fact("agent.version", short(r, 100))
		case "model_info":
			for key := range r.Keys() {
				if key == "name" {
					t.x.label(&t.x.info.Model, short(r, 200))
				}
			}
		}
	}
}

// exception keeps what broke the trial apart from what the agent achieved: a
// reward of 0 beside it is no loss of the player's.
func (t *trial) exception(r *skim.Reader) {
	r.Kind()
	off := r.Offset()
	kind, message := "", ""
	switch r.Kind() {
	case skim.Object:
		for key := range r.Keys() {
			switch key {
			case "exception_type":
				kind = short(r, 200)
			case "exception_message":
				message = r.Str(4096)
			}
		}
	case skim.String:
		message = r.Str(4096)
	default:
		r.Skip()
		return
	}
	if t.failure = strings.TrimSpace(kind + " " + message); t.failure == "" {
		return
	}
	t.x.describe(func(i *Info) { i.Outcome, i.Result = "exception", NewText(t.failure).String() })
	t.x.note(Misleading, "exception", -1, 0, off, r.Offset()-off, "the trial ended by an exception (%s): a reward of 0 is not the agent's loss", head(t.failure, 200))
}

// end adds the instants.
func (t *trial) end() {
	for _, at := range t.times {
		t.x.instant(Lifecycle, at.words, at.at, NoOutcome, at.off, at.n)
	}
}

func (t *trial) reward(st *store, dir string) {
	for _, name := range []string{"reward.txt", "reward.json"} {
		if b, err := st.read(path.Join(dir, name), 4096); err == nil && len(strings.TrimSpace(string(b))) > 0 {
			t.verified = true
			t.x.fact("reward", strings.TrimSpace(string(b)))
		}
	}
}

// openTerminalBench reads a trial's results.json with the agent's terminal.
func openTerminalBench(x *index, st *store, name string) (importer, error) {
	c := &composite{x: x}
	t := &trial{x: x, use: noUsage}
	x.setClock(Absolute)
	if err := c.part(name, func() (importer, error) { return openFacet(x, st, name, t.terminalBench) }); err != nil {
		return nil, err
	}
	film := path.Join(path.Dir(name), "sessions", "agent.cast")
	if !st.isFile(film) {
		x.note(Incomplete, "no-trajectory", -1, 0, 0, 0, "there is no sessions/agent.cast beside it")
		return c, nil
	}
	t.beside(c, st, film)
	x.describe(func(i *Info) { i.Format, i.Harness = "terminal-bench", "terminal-bench" })
	return c, nil
}

func (t *trial) terminalBench(r *skim.Reader) {
	for key := range r.Keys() {
		switch key {
		case "id":
			t.x.label(&t.x.info.Session, short(r, 200))
		case "task_id":
			t.x.label(&t.x.info.Task, short(r, 200))
		case "instruction":
			v := r.Str(16 << 10)
			t.x.describe(func(i *Info) { i.Result = NewText(v).String() })
		case "is_resolved":
			resolved, known := r.Bool()
			words := "not known whether resolved"
			if known {
				words = map[bool]string{true: "resolved", false: "not resolved"}[resolved]
			}
			t.x.describe(func(i *Info) { i.Outcome = words })
		case "failure_mode", "trial_name":
			t.x.fact(key, short(r, 200))
		case "parser_results":
			for test := range r.Keys() {
				t.x.fact("test "+test, short(r, 64))
			}
		case "total_input_tokens":
			t.use.in = count(r)
		case "total_output_tokens":
			t.use.out = count(r)
		case "trial_started_at", "trial_ended_at", "agent_started_at", "agent_ended_at", "test_started_at", "test_ended_at":
			t.time(r, strings.ReplaceAll(strings.TrimSuffix(key, "_at"), "_", " "))
		}
	}
	if r.Err() != nil {
		return
	}
	t.end()
	if !t.use.empty() {
		t.x.give(t.use, "totals of the trial", "")
	}
}
