package export

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"reflect"
	"slices"
	"strings"

	"refbox/engine/arena"
	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/redact"
	"refbox/engine/text"
	"refbox/engine/why"
	"refbox/engine/world"
)

// Bounds of a page: what is more is counted, and is in the recording.
const (
	maxSeatsShown   = 64
	maxRows         = 400     // of one table
	maxCell         = 600     // characters of one cell
	maxExcerpt      = 4 << 10 // bytes of one piece of evidence
	maxRecordsShown = 24      // probe records of one verdict
	maxRecordFiles  = 200
	maxEvidence     = 1000 // pieces on the page
)

//go:embed report.html
var reportHTML string

var reportTemplate = template.Must(template.New("report").Parse(reportHTML))

// Report writes one page that explains a heat: its outcome, standings, time line,
// and per seat the ladder with its evidence, what failed, the attacks and the
// actions; then what is known of the recording's integrity. The page needs no
// network and runs nothing; its policy forbids both. Secrets are taken out, unless
// the redactor is nil.
func Report(ctx context.Context, w io.Writer, rec *recording.Recording, secrets *redact.Redactor) error {
	integrity, err := rec.Verify(ctx)
	if err != nil {
		return err
	}
	r := reporter{rec: rec, w: rec.World(rec.Len()), m: rec.Manifest()}
	p := r.page(integrity)
	if secrets != nil {
		redactAll(secrets, reflect.ValueOf(&p))
		p.Secrets = secrets.String()
	}
	return reportTemplate.Execute(w, p)
}

type (
	page struct {
		Title, Arena, Name string
		Outcome            string
		Facts              []fact
		Conquest           bool
		Canary             bool // a client of the referee's wrote
		Standings          []standing
		Timeline           timeline
		Seats              []seat
		MoreSeats          int
		Notes              []row
		Integrity          integrity
		Secrets            string // what was redacted; "" when nothing was looked for
	}
	fact     struct{ Name, Value string }
	standing struct {
		Rank                              int
		Territory, Agent, Model, Outcome  string
		Points, Passed, Durable           string
		Tokens, Cost, Resources, Survived string
		Loss, Outage                      string // of the canary's writes
	}
	seat struct {
		ID, Agent, Headline string
		Outcome             string
		Facts               []fact
		Ladder              []rung
		Failures            table
		Attacks             table
		Actions             table
		Faults              table
		Story               table
	}
	rung struct {
		Sign, State, Name, ID, Points, At, Attempts, Bounds string
		Evidence                                            string
		File, SHA                                           string
		Records                                             []record
		MoreRecords                                         int
		Note                                                string
	}
	record struct{ At, Call, Request, Response, Witness, Verdict string }
	table  struct {
		Rows []row
		More int
	}
	row struct {
		At, Sign, Word, Who, Text, Took, Detail string
	}
	integrity struct {
		Badge, Seal, Stopped string
		Findings             []finding
	}
	finding struct{ Severity, Code, Where, Text string }
)

type reporter struct {
	rec   *recording.Recording
	w     *world.World
	m     *arena.Manifest
	files int // evidence files read so far
	shown int // pieces of evidence
}

func (r *reporter) page(rep recording.Report) page {
	w := r.w
	p := page{Name: r.rec.Name(), Arena: r.rec.Arena(), Outcome: outcomeLine(w)}
	if r.m != nil && r.m.Arena.DisplayName != "" {
		p.Arena = r.m.Arena.DisplayName
	}
	p.Title = p.Name
	if p.Arena != "" {
		p.Title = p.Arena + " – " + p.Name
	}
	p.Facts = r.facts()
	standings := world.Standings(w)
	for _, st := range standings {
		if s := w.Seat(st.Territory); s.LastHealth != nil || s.State != "provisioning" {
			p.Conquest = true
		}
		p.Canary = p.Canary || w.Seat(st.Territory).Canary != nil
	}
	for i, st := range standings {
		if i == maxSeatsShown {
			p.MoreSeats = len(standings) - i
			break
		}
		p.Standings = append(p.Standings, r.standing(st))
		p.Seats = append(p.Seats, r.seat(st))
	}
	p.Timeline = newTimeline(w, standings)
	for _, n := range w.Notes.All() {
		p.Notes = append(p.Notes, row{At: playback.Format(n.MS), Word: "note", Who: cell(n.Author), Text: cell(n.Text)})
	}
	for _, n := range w.Rulings.All() {
		p.Notes = append(p.Notes, row{At: playback.Format(n.MS), Word: "ruling", Who: cell(n.Author),
			Text: cell(strings.TrimSpace(strings.Join([]string{n.Ruling, n.Territory, n.Milestone}, " ")) + ": " + n.Reason)})
	}
	for _, n := range w.Failures.All() {
		p.Notes = append(p.Notes, row{At: playback.Format(n.MS), Word: "infrastructure", Who: cell(n.Component), Text: cell(n.Source + ": " + n.Detail)})
	}
	p.Notes = p.Notes[:min(len(p.Notes), maxRows)]
	p.Integrity = integrityOf(rep)
	return p
}

// outcomeLine is how the heat ended, in a sentence.
func outcomeLine(w *world.World) string {
	reason := ""
	if w.FinishReason != nil && *w.FinishReason != "" {
		reason = ": " + cell(*w.FinishReason)
	}
	switch {
	case w.MatchState == world.Aborted:
		return "The heat was aborted" + reason + "."
	case !w.Over() && w.Events == 0:
		return "Nothing was recorded."
	case !w.Over():
		return "The heat had no end when the log stopped."
	case w.Winner != nil:
		return cell(*w.Winner) + " won" + reason + "."
	case len(w.DeadHeat) > 0:
		return "A dead heat of " + cell(strings.Join(w.DeadHeat, " and ")) + reason + "."
	}
	return "Nobody won" + reason + "."
}

func (r *reporter) facts() []fact {
	w := r.w
	var out []fact
	add := func(name, format string, args ...any) {
		out = append(out, fact{name, cell(fmt.Sprintf(format, args...))})
	}
	// A time of the file system is no part of the recording.
	if at, exact := r.rec.Started(); exact {
		add("started", "%s", at.UTC().Format("2006-01-02 15:04 UTC"))
	}
	length := playback.Format(w.ElapsedMS)
	if w.FinishedMS != nil {
		length = playback.Format(*w.FinishedMS)
	}
	if r.m != nil {
		length += " of " + playback.Format(uint64(r.m.Duration().Milliseconds()))
	}
	add("length", "%s", length)
	add("events", "%d", w.Events)
	if h := w.Prepared; h != nil {
		add("machines", "%s, %s start in %.1f s", h.Driver, h.Start, float64(h.TookMS)/1000)
	}
	if w.PausedMS > 0 {
		add("paused", "%s", playback.Format(w.PausedMS))
	}
	if m := r.rec.Match(); m != nil {
		by := cmp.Or(m.Engine, "the reference's controller") + " " + m.ControllerVersion
		if m.SourceRevision != nil && *m.SourceRevision != "" {
			by += ", revision " + *m.SourceRevision
		}
		add("recorded by", "%s", by)
	}
	return out
}

func (r *reporter) standing(st world.Standing) standing {
	s := r.w.Seat(st.Territory)
	out := standing{Rank: st.Rank, Territory: cell(st.Territory), Agent: cell(st.Agent), Outcome: outcomeWord(world.OutcomeOf(r.w, st.Territory)),
		Points: fmt.Sprint(st.Points), Passed: fmt.Sprint(st.Passed), Resources: fmt.Sprint(s.Resources), Survived: s.State}
	if r.m != nil && r.m.Build != nil {
		out.Points += fmt.Sprintf(" / %d", r.m.Points())
		out.Passed += fmt.Sprintf(" / %d", len(r.m.Milestones()))
	}
	if d := st.Durable; d != nil {
		out.Durable = playback.Exact(d.At)
		if d.NotBefore != nil {
			out.Durable = playback.Exact(*d.NotBefore) + " – " + playback.Exact(d.At)
		}
	}
	if c := s.CanaryResult; c != nil {
		out.Loss, out.Outage = c.LossWords(), c.OutageWords()
	} else if s.Canary != nil {
		out.Loss, out.Outage = "not read back", "not measured"
	}
	if a := r.w.Agent(st.Agent); a != nil {
		out.Model = cell(a.Model)
		out.Tokens, out.Cost = usage(a)
	}
	return out
}

// usage is what an agent used; unknown is told, never zero.
func usage(a *world.Agent) (tokens, cost string) {
	tokens, cost = "unknown", "unknown"
	if a.Charges > a.TokensUnknown {
		tokens = fmt.Sprintf("%d in, %d out", a.InputTokens, a.OutputTokens)
		if a.TokensUnknown > 0 {
			tokens = "at least " + tokens
		}
	}
	if a.Charges > a.CostUnknown {
		cost = fmt.Sprintf("$%d.%06d", a.CostMicroUSD/1_000_000, a.CostMicroUSD%1_000_000)
		if a.CostUnknown > 0 {
			cost = "at least " + cost
		}
	}
	return tokens, cost
}

func (r *reporter) seat(st world.Standing) seat {
	s := r.w.Seat(st.Territory)
	out := seat{ID: cell(s.ID), Agent: cell(s.Agent), Outcome: outcomeWord(world.OutcomeOf(r.w, s.ID))}
	told, _ := why.Explain(r.w, r.m, s.ID)
	if s.LastHealth == nil { // a conquest has no milestones to tell of
		out.Headline = cell(told.Headline)
	}
	fact1 := func(name, value string) {
		if value != "" {
			out.Facts = append(out.Facts, fact{name, cell(value)})
		}
	}
	fact1("class", s.Class)
	if p := s.Prepared; p != nil {
		fact1("machines", strings.Join(p.Machines, ", "))
		fact1("adapter", p.Adapter)
		fact1("note", p.Note)
	}
	if h := s.LastHealth; h != nil {
		fact1("last health", fmt.Sprintf("healthy %v in %d ms: %s", h.Healthy, h.LatencyMS, h.Detail))
		fact1("resources", fmt.Sprint(s.Resources))
	}
	if c := s.Canary; c != nil {
		fact1("canary's writes", fmt.Sprintf("%d acknowledged, %d failed, %d indeterminate", c.Acknowledged, c.Failed, c.Indeterminate))
	}
	if n := s.Decoys.Len(); n > 0 {
		fact1("decoys used", fmt.Sprintf("%d, planted to be left alone", n))
	}
	if s.Hostile > 0 {
		fact1("hostile output", fmt.Sprintf("neutralised %s", text.Count(s.Hostile, "time")))
	}
	for _, x := range world.Ladder(r.w, r.m, s.ID) {
		out.Ladder = append(out.Ladder, r.rung(x))
	}
	for _, f := range s.Spans.All() {
		times := ""
		if f.Count > 1 {
			times = fmt.Sprintf("×%d", f.Count)
		}
		out.Failures.add(row{At: playback.Format(f.SinceMS), Sign: "✗", Word: cell(f.Category), Who: cell(f.Milestone), Text: cell(f.Detail), Took: seconds(f.LastMS - min(f.LastMS, f.SinceMS)), Detail: times})
	}
	for _, a := range s.Attacks.All() {
		out.Attacks.add(attackRow(a))
	}
	for _, a := range s.Actions.All() {
		out.Actions.add(actionRow(a))
	}
	for _, f := range s.Faults.All() {
		out.Faults.add(row{At: playback.Format(f.InjectedMS), Word: string(f.State), Who: cell(f.Target), Text: cell(f.Fault + ", by " + f.Author + ": " + f.Reason), Detail: cell(f.Words())})
	}
	for _, l := range told.Lines {
		switch l.Kind {
		case why.Passed, why.Failed, why.Attack, why.Fault: // have tables of their own
			continue
		}
		out.Story.add(row{At: playback.Format(l.MS), Word: string(l.Kind), Text: cell(l.Text)})
	}
	return out
}

func (t *table) add(r row) {
	if len(t.Rows) >= maxRows {
		t.More++
		return
	}
	t.Rows = append(t.Rows, r)
}

func attackRow(a world.Attack) row {
	out := row{At: playback.Format(a.StartMS), Sign: "⚔", Word: "runs", Who: cell(a.Milestone), Text: cell(a.Attack), Detail: cell(a.Detail)}
	if a.Done {
		out.Took = seconds(a.TookMS)
		out.Word = "broke through"
		if a.Held {
			out.Word = "withstood"
		}
		if !a.Undone {
			out.Word += ", not undone"
		}
		if out.Detail == out.Word {
			out.Detail = ""
		}
	}
	return out
}

func actionRow(a world.Action) row {
	out := row{At: playback.Format(a.StartMS), Word: a.Channel, Who: cell(a.Machine), Text: cell(a.Command), Sign: "…", Detail: excerpt(a.Output)}
	if a.SelfReported {
		out.Word += " (self-reported)"
	}
	switch {
	case !a.Done:
	case a.Exit == nil:
		out.Sign, out.Took = "cut", seconds(a.TookMS)
	case *a.Exit == 0:
		out.Sign, out.Took = "✓", seconds(a.TookMS)
	default:
		out.Sign, out.Took = fmt.Sprintf("exit %d", *a.Exit), seconds(a.TookMS)
	}
	return out
}

func (r *reporter) rung(x world.Rung) rung {
	out := rung{ID: cell(x.ID), Name: cell(x.Name), Points: fmt.Sprint(x.Points), State: string(x.State), Sign: map[world.RungState]string{
		world.RungPassed: "✓", world.RungVerifying: "◐", world.RungFailing: "✗", world.RungRevoked: "↶", world.RungVoid: "⊘", world.RungPending: "○", world.RungLocked: "·",
	}[x.State]}
	m := x.Milestone
	if m == nil {
		return out
	}
	if m.Attempts > 0 {
		out.Attempts = fmt.Sprint(m.Attempts)
	}
	file, sha := "", ""
	switch {
	case m.Passed:
		out.At = playback.Exact(m.PassedMS)
		if m.HeldAt != nil && m.NotBefore != nil {
			out.Bounds = "became true between " + playback.Exact(*m.NotBefore) + " and " + playback.Exact(*m.HeldAt)
		}
		if r.shown++; len(m.Evidence) > 0 && r.shown <= maxEvidence {
			out.Evidence = excerpt(indented(m.Evidence))
		}
		file, sha = m.Record, m.RecordSHA
	case m.Failing:
		out.At = playback.Exact(m.Failure.MS)
		out.Bounds = cell(m.Failure.Category + ": " + m.Failure.Detail)
		file, sha = m.Failure.Record, m.Failure.RecordSHA
	}
	if file != "" {
		out.File, out.SHA = cell(file), cell(sha)
		out.Records, out.MoreRecords, out.Note = r.records(file)
	}
	return out
}

// records are the probe records of one evidence file.
func (r *reporter) records(file string) (out []record, more int, note string) {
	if r.files++; r.files > maxRecordFiles {
		return nil, 0, "is in the recording"
	}
	raw, err := r.rec.File(file)
	if err != nil {
		return nil, 0, cell("is not shown: " + err.Error())
	}
	var evidence struct {
		Records []struct {
			Call      string          `json:"call"`
			Machine   string          `json:"machine"`
			Request   json.RawMessage `json:"request"`
			Response  json.RawMessage `json:"response"`
			AtMS      uint64          `json:"at_ms"`
			TookMS    uint64          `json:"took_ms"`
			Outside   bool            `json:"outside"`
			Forgeable string          `json:"forgeable"`
			Error     string          `json:"error"`
			Refused   string          `json:"refused"`
		} `json:"records"`
	}
	if err := json.Unmarshal(raw, &evidence); err != nil {
		return nil, 0, cell("is not shown: " + err.Error())
	}
	list := evidence.Records
	// The last ones decided.
	if more = max(0, len(list)-maxRecordsShown); more > 0 {
		list = list[more:]
	}
	for _, x := range list {
		witness := "inside the guest"
		if x.Outside {
			witness = "outside the guest"
		}
		if x.Forgeable != "" {
			witness += "; root could forge: " + x.Forgeable
		}
		out = append(out, record{
			At: playback.Exact(x.AtMS), Call: cell(strings.TrimSpace(x.Call + " " + x.Machine)), Request: cell(compact(x.Request)), Response: cell(compact(x.Response)),
			Witness: cell(witness), Verdict: cell(cmp.Or(x.Refused, x.Error)),
		})
	}
	return out, more, ""
}

func integrityOf(rep recording.Report) integrity {
	out := integrity{Badge: rep.Badge(), Stopped: cell(rep.Stopped), Seal: "The log carries no hashes: who wrote it, and whether it was changed, cannot be told."}
	switch {
	case rep.Sealed && rep.Chained:
		out.Seal = "Each line of the log carries the hash of the one before, and match.json names the last."
	case rep.Chained:
		out.Seal = "Each line of the log carries the hash of the one before; no seal names the last."
	}
	for _, f := range rep.Findings {
		where := f.File
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d (byte %d)", where, f.Line, f.Offset)
		}
		out.Findings = append(out.Findings, finding{string(f.Severity), cell(f.Code), cell(where), cell(f.Text)})
	}
	slices.SortStableFunc(out.Findings, func(a, b finding) int { return cmp.Compare(a.Severity, b.Severity) }) // breaks first
	return out
}
