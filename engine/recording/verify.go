package recording

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"refbox/engine/event"
	"refbox/engine/text"
	"refbox/engine/world"
)

// Verify checks everything that the recording can prove: it folds the log anew and
// compares world.json, follows the chain from match.json to the sealed head, and
// checks the seed and the digests of arena.json and the evidence. A heat that is
// still written is checked as far as it has come. What is wrong with a recording is
// in the report; the error is for one that cannot be read.
func (r *Recording) Verify(ctx context.Context) (Report, error) {
	if err := r.Load(ctx); err != nil {
		return Report{}, err
	}
	v := verification{r: r, out: r.Integrity(), world: world.New(), records: map[string]record{}}
	r.mu.Lock()
	v.size, v.match, v.matchRaw = r.size, r.match, r.matchRaw
	r.mu.Unlock()
	if err := v.run(ctx); err != nil {
		return Report{}, err
	}
	v.out.Verified = true
	if len(v.out.Findings) == 0 {
		v.out.Findings = []Finding{} // a list in JSON too
	}
	return v.out, nil
}

type verification struct {
	r        *Recording
	out      Report
	world    *world.World
	size     int64
	match    *Match
	matchRaw []byte
	records  map[string]record
	order    []string
}

// record is a file that an event names.
type record struct {
	sha  string
	line int
}

const maxRecords = 100000

func (v *verification) add(s Severity, code, file string, line int, offset int64, format string, args ...any) {
	if len(v.out.Findings) < 1000 {
		v.out.Findings = append(v.out.Findings, Finding{s, code, text.Line(file), line, offset, text.Line(fmt.Sprintf(format, args...))})
	}
}

func (v *verification) run(ctx context.Context) error {
	if v.size > 0 {
		if err := v.log(ctx); err != nil {
			return err
		}
	}
	if v.r.single {
		return nil
	}
	if !v.r.Live() {
		v.worldFile()
	}
	if v.match.Ours() {
		v.matchFile()
	}
	if err := v.transcripts(ctx); err != nil {
		return err
	}
	for _, name := range v.order {
		if err := ctx.Err(); err != nil {
			return err
		}
		v.record(name, v.records[name])
	}
	return nil
}

func (v *verification) log(ctx context.Context) error {
	r := v.r
	genesis, sealed := "", ""
	if v.match.Ours() {
		var err error
		if genesis, err = startHash(v.matchRaw); err != nil {
			return err
		}
		if v.match.End != nil {
			sealed = v.match.End.LogHead
		}
	}
	f, err := r.source().open(r.log)
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer f.Close()
	chain := event.NewChain(genesis)
	decoder := event.Decoder{Raw: true}
	br := bufio.NewReaderSize(io.NewSectionReader(f, 0, v.size), 256<<10)
	for lines := 1; ; lines++ {
		if lines%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, _, err := event.ReadLine(br)
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, event.ErrTooLong) {
			return fmt.Errorf("read the log at line %d: %w", lines, err)
		}
		v.chain(chain.Next(line))
		e, err := decoder.Decode(line)
		if err != nil {
			if at := salvage(line, func(b []byte) bool { _, err := decoder.Decode(b); return err == nil }); at > 0 {
				e, err = decoder.Decode(line[at:])
			}
		}
		if err == nil {
			world.Apply(v.world, e)
			v.remember(e, lines)
		}
	}
	v.chain(chain.Close(sealed))
	v.out.Chained = chain.Chained()
	if v.match.Ours() && !chain.Chained() {
		v.add(Break, "chain_missing", r.log, 1, 0, "the log carries no hashes, although match.json says that refbox wrote it")
	}
	return nil
}

func (v *verification) chain(err error) {
	var broken *event.ChainError
	if errors.As(err, &broken) {
		v.add(Break, "chain_broken", v.r.log, broken.Line, broken.Offset, "%s", err)
	}
}

// remember collects the files that events name, with their digests.
func (v *verification) remember(e event.Event, line int) {
	add := func(name, sha string) {
		if name == "" || len(v.order) >= maxRecords {
			return
		}
		if _, ok := v.records[name]; !ok {
			v.order = append(v.order, name)
			v.records[name] = record{sha, line}
		}
	}
	switch b := e.Body.(type) {
	case event.MilestonePassed:
		add(b.Record, b.RecordSHA)
	case event.MilestoneFailed:
		add(b.Record, b.RecordSHA)
	case event.MilestoneRevoked:
		add(b.Record, b.RecordSHA)
	case event.AttackFinished:
		add(b.Record, b.RecordSHA)
	}
}

func (v *verification) record(name string, rec record) {
	data, err := v.r.source().read(name, maxEvidence)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.add(Note, "evidence_missing", name, 0, 0, "line %d names evidence that is not there", rec.line)
	case err != nil:
		v.add(Note, "evidence_unreadable", name, 0, 0, "line %d names evidence that is not read: %v", rec.line, err)
	case rec.sha != "" && digest(data) != rec.sha:
		v.add(Break, "evidence_altered", name, 0, 0, "the evidence is not what line %d of the log gives the digest of", rec.line)
	}
}

func (v *verification) worldFile() {
	recorded, err := v.r.source().read(worldFile, maxWorld)
	if errors.Is(err, fs.ErrNotExist) {
		return // Integrity says so
	}
	if err != nil {
		v.add(Note, "file_unreadable", worldFile, 0, 0, "is not read: %v", err)
		return
	}
	differences, era, err := world.CompareRecorded(v.world, recorded)
	if err != nil {
		v.add(Break, "world_differs", worldFile, 0, 0, "is not a world: %v", err)
		return
	}
	if v.match.Ours() {
		var keys map[string]json.RawMessage
		if json.Unmarshal(recorded, &keys) == nil && keys["refbox"] == nil {
			v.add(Break, "world_differs", worldFile, 0, 0, "lacks the part that refbox writes")
		}
	}
	for _, d := range differences {
		v.add(Break, "world_differs", worldFile, 0, 0, "%s", d)
	}
	for _, e := range era {
		v.add(Note, "era", worldFile, 0, 0, "%s", e)
	}
}

func (v *verification) matchFile() {
	if v.match.ArenaSHA256 != "" {
		data, err := v.r.source().read(arenaFile, maxManifest)
		if err == nil && digest(data) != v.match.ArenaSHA256 {
			v.add(Break, "arena_altered", arenaFile, 0, 0, "is not the manifest that match.json gives the digest of")
		}
	}
	end := v.match.End
	if end == nil {
		return
	}
	seed, err := hex.DecodeString(end.Seed)
	if err != nil || digest(seed) != v.match.SeedSHA256 {
		v.add(Break, "seed_differs", matchFile, 0, 0, "the seed is not the one whose digest was given at the start")
	}
	if end.State != v.world.MatchState {
		v.add(Break, "state_differs", matchFile, 0, 0, "says that the heat was %s; the log says %s", end.State, v.world.MatchState)
	}
	if end.Events != uint64(v.out.Events) {
		v.add(Break, "events_differ", matchFile, 0, 0, "counts %s; the log has %d", text.Count(end.Events, "event"), v.out.Events)
	}
	if v.size == 0 && end.Events > 0 {
		v.add(Break, "chain_broken", v.r.log, 0, 0, "the log is empty")
	}
	if !bytes.Contains(v.matchRaw, []byte(`"schema_version"`)) {
		v.add(Note, "odd_match", matchFile, 0, 0, "has no schema version")
	}
}
