// Package llm is the player that drives a language model: any endpoint that
// speaks OpenAI's chat completions, with one tool, a shell on the seat's
// machines.
//
// Guarantees:
//
//   - The key stays in this process: it is sent to the endpoint and nowhere else,
//     follows no redirect, and is hidden in everything that is recorded.
//   - Every command goes through the seat's gateway, which observes it.
//   - What is the provider's fault (a refused or lost connection, a cut stream,
//     too many requests, a server's error) is tried again with backoff, and
//     charged to the provider when it stays; what is the model's (a malformed
//     call, a refusal, a context that is full) is the player's.
//   - Tokens and cost that the endpoint does not tell are unknown, never zero.
//   - What an endpoint sends is bounded and sanitised.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"refbox/engine/agent"
	"refbox/engine/text"
)

// Config is a model behind an endpoint.
type Config struct {
	Endpoint string // the base of the API: "https://openrouter.ai/api/v1"
	Key      string // "" for an endpoint that needs none
	Model    string // as the endpoint calls it
	// Effort is passed on as reasoning_effort; "" or "default" leaves it out.
	Effort string
	// Prices are used where the endpoint does not tell an answer's cost; nil for
	// unknown.
	Prices    *Prices
	MaxTokens int    // of one answer; 0 for the endpoint's default
	Version   string // of refbox, for the transcript

	backoff time.Duration // of the first wait; 0 for firstWait
	idle    time.Duration // without a byte of an answer; 0 for idleTime
}

// Prices are micro-dollars for a million tokens.
type Prices struct {
	Input, Output uint64
	// Cached is for input that the endpoint had in its cache; nil as for Input.
	Cached *uint64
}

// Times and bounds of a conversation.
const (
	firstWait    = 500 * time.Millisecond
	longestWait  = time.Minute // also of a Retry-After
	attempts     = 7           // of one request
	idleTime     = 2 * time.Minute
	commandTime  = 2 * time.Minute // of a command that does not say
	longestTime  = 10 * time.Minute
	outputBytes  = 16 << 10 // of a command, as the model sees it
	callsPerTurn = 16
	malformedRow = 5 // turns in a row of which no call could be understood
	lengthRow    = 3 // answers in a row that were too long
	emptyRow     = 3
)

// Check says what of the configuration cannot work.
func (c Config) Check() error {
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil:
		return errors.New("endpoint: it is no address such as https://openrouter.ai/api/v1") // err repeats what may hold a key
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("endpoint: %q is no address such as https://openrouter.ai/api/v1", u.Redacted())
	case u.User != nil:
		return errors.New("endpoint: it has a password in it; name the key with key_env or key_file")
	case c.Model == "":
		return errors.New("model: name the model as the endpoint calls it")
	}
	return nil
}

// Player is the player that c describes.
func Player(c Config) agent.Player { return player{c} }

type player struct{ cfg Config }

// play is one model at one seat.
type play struct {
	cfg     Config
	seat    agent.Seat
	report  agent.Report
	shell   *agent.Shell
	client  *client
	log     *log
	secrets agent.Secrets
	bill    bill

	messages []openai.ChatCompletionMessage
	said     string // the last answer in words
	silent   int    // answers in a row without a call
	bad      int    // in a row whose calls were all malformed
	long     int    // in a row that were cut for their length
	empty    int
	shrunk   int // how often the history was shortened
}

// Play implements agent.Player.
func (p player) Play(ctx context.Context, seat agent.Seat, report agent.Report) agent.Result {
	if p.cfg.Model == "" {
		p.cfg.Model = seat.Model
	}
	if err := p.cfg.Check(); err != nil {
		return agent.Result{Status: agent.HarnessError, Summary: err.Error()}
	}
	brief, err := os.ReadFile(seat.Brief)
	if err != nil {
		return agent.Result{Status: agent.HarnessError, Summary: "read the brief: " + err.Error()}
	}
	g := &play{cfg: p.cfg, seat: seat, report: report, shell: agent.NewShell(seat.Login), client: newClient(p.cfg),
		secrets: agent.NewSecrets(p.cfg.Key, seat.Login.Password)}
	defer g.shell.Close()
	defer g.client.close()
	g.log = newLog(seat, p.cfg, g.secrets)
	g.messages = []openai.ChatCompletionMessage{
		{Role: openai.ChatMessageRoleSystem, Content: g.instructions()},
		{Role: openai.ChatMessageRoleUser, Content: string(brief)},
	}
	for _, m := range g.messages {
		g.log.add(step{Source: m.Role, Message: m.Content})
	}
	r := g.run(ctx)
	r.Summary = g.secrets.HideText(r.Summary)
	r.Usage = g.bill.usage()
	if name, err := g.log.write(g.bill, true); err != nil {
		r.Summary = strings.TrimSpace(r.Summary + "\nthe transcript could not be written: " + err.Error())
	} else {
		r.Transcript = name
	}
	return r
}

// instructions are the system's part: what the brief does not say.
func (g *play) instructions() string {
	var b strings.Builder
	fmt.Fprintf(&b, "You are %s, and race to repair a machine. You work alone, through one tool, %q, which runs a command as root on the seat's machine", text.Line(g.seat.Agent), toolName)
	if len(g.seat.Login.Machines) > 1 {
		fmt.Fprintf(&b, "s %s (the first unless you say otherwise)", strings.Join(g.seat.Login.Machines, ", "))
	}
	fmt.Fprintf(&b, ". Each command runs in a shell of its own, with nothing on its standard input; it is cut after %v unless you ask for another time. Of long output you see the beginning and the end. Nobody answers questions. When you are done, say so in words, without a call.", commandTime)
	return b.String()
}

// run is the conversation. The usage and the transcript are the caller's.
func (g *play) run(ctx context.Context) agent.Result {
	end := func(status agent.Status, format string, a ...any) agent.Result {
		return agent.Result{Status: status, Summary: fmt.Sprintf(format, a...)}
	}
	for {
		a, bad := g.ask(ctx)
		if ctx.Err() != nil {
			return end(agent.CutStatus(ctx), "cut after %s", text.Count(g.bill.rounds, "turn"))
		}
		if bad != nil {
			if bad.kind == overflow && g.shrink() {
				g.log.add(step{Source: "system", Message: "the context is full: the oldest output was left out"})
				continue
			}
			return end(bad.status(), "%s", bad.text)
		}
		g.bill.charge(a)
		g.report.Usage(g.bill.soFar(a))
		entry := g.log.answer(a)
		switch {
		case a.refusal != "":
			return end(agent.Failed, "the model refused: %s", brief(a.refusal))
		case a.finish == openai.FinishReasonContentFilter:
			return end(agent.Failed, "the answer was withheld by a content filter: %s", brief(a.content))
		}
		if ctx.Err() != nil { // a limit that this answer reached
			return end(agent.CutStatus(ctx), "cut after %s", text.Count(g.bill.rounds, "turn"))
		}
		if len(a.calls) > 0 {
			if why := g.calls(ctx, a, entry); why != "" {
				return end(agent.Failed, "%s", why)
			}
		} else if r := g.words(a); r != nil {
			return *r
		}
		if ctx.Err() != nil {
			return end(agent.CutStatus(ctx), "cut after %s", text.Count(g.bill.rounds, "turn"))
		}
		if _, err := g.log.write(g.bill, false); err != nil {
			return end(agent.HarnessError, "the transcript cannot be written: %v", err)
		}
	}
}

// words takes an answer without a call; the result when it is the last.
func (g *play) words(a *answer) *agent.Result {
	g.messages = append(g.messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: a.content})
	say := func(s string) *agent.Result {
		g.messages = append(g.messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: s})
		g.log.add(step{Source: "user", Message: s})
		return nil
	}
	switch {
	case a.finish == openai.FinishReasonLength:
		if g.long++; g.long >= lengthRow {
			return &agent.Result{Status: agent.Failed, Summary: fmt.Sprintf("%d answers in a row were longer than the endpoint allows", g.long)}
		}
		return say("Your answer was cut for its length. Go on, more briefly.")
	case strings.TrimSpace(a.content) == "":
		g.messages = g.messages[:len(g.messages)-1] // some endpoints refuse empty messages
		if g.empty++; g.empty >= emptyRow {
			return &agent.Result{Status: agent.Failed, Summary: fmt.Sprintf("%d answers in a row were empty", g.empty)}
		}
		return say("Your answer was empty. Use the tool, or say that you are done.")
	}
	g.long, g.empty = 0, 0
	if g.silent++; g.silent > 1 {
		return &agent.Result{Status: agent.Completed, Summary: g.said}
	}
	g.said = a.content
	return say("If you are done, say so once more. Otherwise go on with the tool.")
}

// calls runs the calls of an answer; why the player is given up, or "".
func (g *play) calls(ctx context.Context, a *answer, entry int) string {
	g.silent, g.long, g.empty = 0, 0, 0
	m := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: a.content}
	understood := false
	var results []openai.ChatCompletionMessage
	for i, c := range a.calls {
		call, err := parseCall(c, a.finish)
		if i >= callsPerTurn {
			err = fmt.Errorf("at most %d calls in one answer are run", callsPerTurn)
		}
		sent := c.Function.Arguments
		if err != nil && !json.Valid([]byte(sent)) {
			sent = "{}" // endpoints refuse a history with anything else in it
		}
		m.ToolCalls = append(m.ToolCalls, openai.ToolCall{ID: c.ID, Type: openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: c.Function.Name, Arguments: sent}})
		began := time.Now()
		var shown string
		failed := true
		if err != nil {
			shown = "the call was not understood: " + err.Error()
		} else {
			understood = true
			g.bill.tools++
			shown, failed = g.command(ctx, call)
		}
		shown = g.secrets.HideText(shown)
		g.log.result(entry, c.ID, shown, failed, began)
		results = append(results, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: c.ID, Content: shown})
		if ctx.Err() != nil {
			return ""
		}
	}
	g.messages = append(append(g.messages, m), results...)
	if understood {
		g.bad = 0
	} else if g.bad++; g.bad >= malformedRow {
		return fmt.Sprintf("%d answers in a row called the tool in a way that could not be understood", g.bad)
	}
	return ""
}

// command runs one command; what the model is shown, and whether it failed.
func (g *play) command(ctx context.Context, c call) (shown string, failed bool) {
	limit := commandTime
	if c.Seconds > 0 {
		limit = min(time.Duration(c.Seconds)*time.Second, longestTime)
	}
	o, err := g.shell.Run(ctx, c.Machine, c.Command, limit, outputBytes)
	if err != nil {
		return "it could not be run: " + err.Error(), true
	}
	shown = strings.TrimRight(o.Text, "\n")
	if shown != "" {
		shown += "\n"
	}
	if o.Exit == nil {
		return shown + "[" + o.Detail + "]", true
	}
	return shown + fmt.Sprintf("[exit %d]", *o.Exit), *o.Exit != 0
}

// shrink leaves out the older half of the outputs; false when nothing is left to
// leave out.
func (g *play) shrink() bool {
	const out = "[left out: the context was full]"
	var at []int
	for i, m := range g.messages {
		if m.Role == openai.ChatMessageRoleTool && len(m.Content) > len(out) {
			at = append(at, i)
		}
	}
	if g.shrunk++; len(at) == 0 || g.shrunk > 8 {
		return false
	}
	for _, i := range at[:(len(at)+1)/2] {
		g.messages[i].Content = out
	}
	return true
}

// brief bounds what an endpoint said.
func brief(s string) string {
	s = text.Line(s[:min(len(s), 2000)])
	if r := []rune(s); len(r) > 400 {
		s = string(r[:400]) + text.Ellipsis
	}
	return s
}
