package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"refbox/engine/agent"
	"refbox/engine/internal/pause"
	"refbox/engine/text"
)

// answer is one answer of the model.
type answer struct {
	content, reasoning, refusal string
	calls                       []openai.ToolCall
	finish                      openai.FinishReason
	model                       string
	spent                       spent
	began                       time.Time
	took                        time.Duration
}

// kind is whose fault an answer that did not come is.
type kind byte

const (
	provider kind = iota // the endpoint's, or the way's to it
	overflow             // the history is longer than the model takes
	refused              // the provider's policy forbids it
	harness              // the request is wrong
)

// fault is why there is no answer.
type fault struct {
	kind  kind
	again bool          // it may pass
	after time.Duration // at the earliest; 0 for not told
	sent  bool          // the model may have worked for it
	text  string
}

// status is how a player ends that a fault ended (recordings reference, section
// 6.4).
func (f *fault) status() agent.Status {
	switch f.kind {
	case provider:
		return agent.Unavailable
	case overflow, refused:
		return agent.Failed
	}
	return agent.HarnessError
}

// client is the connection to an endpoint.
type client struct {
	cfg  Config
	api  *openai.Client
	http *http.Client

	mu    sync.Mutex
	after time.Duration // of the last response's Retry-After
}

// answerBytes bounds one answer on the wire.
const answerBytes = 32 << 20

func newClient(cfg Config) *client {
	c := &client{cfg: cfg, http: &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 20 * time.Second, ForceAttemptHTTP2: true},
		// A redirect would take the key and the conversation elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	conf := openai.DefaultConfig(cfg.Key)
	conf.BaseURL = strings.TrimRight(cfg.Endpoint, "/")
	conf.HTTPClient = c
	conf.EmptyMessagesLimit = 100_000 // keep-alive comments; the idle time and answerBytes bound them
	c.api = openai.NewClientWithConfig(conf)
	return c
}

func (c *client) close() { c.http.CloseIdleConnections() }

// Do notes what the client library does not pass on, and bounds what it reads.
func (c *client) Do(req *http.Request) (*http.Response, error) {
	if c.cfg.Key == "" {
		req.Header.Del("Authorization")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.after = retryAfter(res.Header, time.Now())
	c.mu.Unlock()
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		res.Body.Close()
		return nil, &openai.APIError{HTTPStatusCode: res.StatusCode, Message: "a redirect is not followed; name the address that it leads to"}
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, answerBytes), res.Body}
	return res, nil
}

// retryAfter reads the header's seconds or date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}

// ask asks for the next answer, and again as long as that makes sense.
func (g *play) ask(ctx context.Context) (*answer, *fault) {
	wait := g.cfg.backoff
	if wait == 0 {
		wait = firstWait
	}
	for n := 1; ; n++ {
		a, bad := g.client.stream(ctx, g.request())
		if ctx.Err() != nil && a == nil {
			if bad == nil || bad.sent {
				g.bill.lost()
			}
			return nil, &fault{}
		}
		if bad == nil {
			return a, nil
		}
		if bad.sent {
			g.bill.lost()
		}
		bad.text = g.secrets.HideText(bad.text)
		g.log.add(step{Source: "system", Message: fmt.Sprintf("request %d, attempt %d: %s", g.bill.rounds+1, n, bad.text)})
		if !bad.again || n >= attempts {
			if bad.again {
				bad.text = fmt.Sprintf("%s (%s)", bad.text, text.Count(n, "attempt"))
			}
			return nil, bad
		}
		g.report.Note(bad.text)
		d := min(longestWait, wait+time.Duration(rand.Int64N(int64(wait)/4+1)))
		d = min(longestWait, max(d, bad.after))
		wait = min(longestWait, 2*wait)
		if !pause.For(ctx, d) {
			return nil, &fault{}
		}
	}
}

func (g *play) request() openai.ChatCompletionRequest {
	//lint:ignore SA1019 vLLM and Ollama know no other name for it
	r := openai.ChatCompletionRequest{Model: g.cfg.Model, Messages: g.messages, Tools: tools(g.seat.Login.Machines), MaxTokens: g.cfg.MaxTokens}
	if g.cfg.Effort != "" && g.cfg.Effort != "default" {
		r.ReasoningEffort = g.cfg.Effort
	}
	return r
}

// chunk is a piece of a streamed answer, with what dialects add to OpenAI's.
type chunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Delta struct {
			Content          string            `json:"content"`
			Refusal          string            `json:"refusal"`
			Reasoning        string            `json:"reasoning"`
			ReasoningContent string            `json:"reasoning_content"`
			ToolCalls        []openai.ToolCall `json:"tool_calls"`
		} `json:"delta"`
		Finish openai.FinishReason `json:"finish_reason"`
	} `json:"choices"`
	Usage *tell           `json:"usage"`
	Error json.RawMessage `json:"error"`
}

var errIdle = errors.New("no byte came")

// stream asks once. Of the answer and the fault one is nil.
func (c *client) stream(ctx context.Context, req openai.ChatCompletionRequest) (*answer, *fault) {
	req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	idle := c.cfg.idle
	if idle == 0 {
		idle = idleTime
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(idle, func() { cancel(errIdle) })
	defer silence.Stop()
	a := &answer{began: time.Now()}
	s, err := c.api.CreateChatCompletionStream(ctx, req)
	if err != nil {
		return nil, c.fault(ctx, err, idle)
	}
	defer s.Close()
	done := false
	for {
		data, err := s.RecvRaw()
		if err == nil {
			silence.Reset(idle)
			var bad *fault
			if bad, err = a.take(data, c.cfg.Prices); bad != nil {
				return nil, bad
			}
			if err == nil {
				done = done || a.finish != ""
				continue
			}
		}
		switch {
		case errors.Is(err, io.EOF) && done:
			a.took = time.Since(a.began)
			a.tidy()
			return a, nil
		case errors.Is(err, io.EOF):
			return nil, &fault{again: true, sent: true, text: "the stream was cut before the answer ended"}
		}
		bad := c.fault(ctx, err, idle)
		bad.sent = true
		return nil, bad
	}
}

// take adds a piece.
func (a *answer) take(data []byte, p *Prices) (*fault, error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("the stream holds what is no JSON: %w", err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		var e openai.APIError
		if json.Unmarshal(c.Error, &e) != nil || e.Message == "" {
			e.Message = string(c.Error)
		}
		f := judge(codeOf(&e), &e)
		f.sent = true
		return f, nil
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if c.Usage != nil {
		a.spent = c.Usage.spent(p)
	}
	for _, ch := range c.Choices {
		a.content += ch.Delta.Content
		a.refusal += ch.Delta.Refusal
		a.reasoning += ch.Delta.Reasoning + ch.Delta.ReasoningContent
		for _, d := range ch.Delta.ToolCalls {
			a.call(d)
		}
		if ch.Finish != "" && ch.Finish != openai.FinishReasonNull {
			a.finish = ch.Finish
		}
	}
	return nil, nil
}

// call adds a piece of a call: one that names no place belongs to the last, unless
// it has an id of its own.
func (a *answer) call(d openai.ToolCall) {
	at := len(a.calls) - 1
	switch {
	case d.Index != nil:
		at = slices.IndexFunc(a.calls, func(c openai.ToolCall) bool { return c.Index != nil && *c.Index == *d.Index })
	case d.ID != "":
		at = slices.IndexFunc(a.calls, func(c openai.ToolCall) bool { return c.ID == d.ID })
	}
	if at < 0 {
		if len(a.calls) >= 4*callsPerTurn {
			return
		}
		a.calls = append(a.calls, openai.ToolCall{Index: d.Index})
		at = len(a.calls) - 1
	}
	c := &a.calls[at]
	if d.ID != "" {
		c.ID = d.ID
	}
	c.Function.Name += d.Function.Name
	c.Function.Arguments += d.Function.Arguments
}

// tidy gives every call an id of its own.
func (a *answer) tidy() {
	seen := map[string]bool{"": true}
	for i := range a.calls {
		if seen[a.calls[i].ID] {
			a.calls[i].ID = fmt.Sprintf("call-%d-%d", a.began.UnixNano(), i)
		}
		seen[a.calls[i].ID] = true
	}
}

// fault judges an error of the client library.
func (c *client) fault(ctx context.Context, err error, idle time.Duration) *fault {
	if errors.Is(context.Cause(ctx), errIdle) {
		return &fault{again: true, sent: true, text: fmt.Sprintf("the endpoint sent nothing for %v", idle)}
	}
	var (
		api *openai.APIError
		raw *openai.RequestError
	)
	switch {
	case errors.As(err, &api):
		code := api.HTTPStatusCode
		if code == 0 {
			code = codeOf(api)
		}
		f := judge(code, api)
		c.mu.Lock()
		f.after = c.after
		c.mu.Unlock()
		return f
	case errors.As(err, &raw):
		f := judge(raw.HTTPStatusCode, &openai.APIError{Message: strings.TrimSpace(string(raw.Body))})
		c.mu.Lock()
		f.after = c.after
		c.mu.Unlock()
		return f
	}
	return &fault{again: true, text: "the endpoint cannot be reached: " + brief(err.Error())}
}

// codeOf is the status that an error in a stream stands for; 0 for unknown.
func codeOf(e *openai.APIError) int {
	switch v := e.Code.(type) {
	case int:
		return v
	case float64:
		return int(v)
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			return n
		}
		switch v {
		case "rate_limit_exceeded":
			return http.StatusTooManyRequests
		case "context_length_exceeded", "invalid_request_error":
			return http.StatusBadRequest
		}
	}
	return 0
}

// judge says whose fault an endpoint's error is. There is no one way in which
// endpoints say that the context is full, so its words are looked at, too.
func judge(code int, e *openai.APIError) *fault {
	said := brief(e.Message)
	words := strings.ToLower(said + " " + fmt.Sprint(e.Code) + " " + e.Type)
	has := func(all ...string) bool {
		return slices.ContainsFunc(all, func(w string) bool { return strings.Contains(words, w) })
	}
	what := "the endpoint's error"
	if code != 0 {
		what = fmt.Sprintf("the endpoint answered %d %s", code, http.StatusText(code))
	}
	f := &fault{kind: provider, text: strings.TrimSuffix(strings.TrimSpace(what)+": "+said, ": ")}
	switch {
	case code == http.StatusRequestEntityTooLarge,
		has("context_length", "context length", "context window", "maximum context", "too many tokens", "prompt is too long", "context size"):
		f.kind = overflow
	case has("content_policy", "content policy", "content_filter", "content management policy"):
		f.kind = refused
	case code == 0, code == http.StatusRequestTimeout, code == http.StatusConflict, code == http.StatusTooEarly,
		code == http.StatusTooManyRequests, code >= 500:
		// Too little money is no matter of waiting.
		f.again = !has("insufficient_quota", "insufficient credit", "billing")
	case code == http.StatusUnauthorized, code == http.StatusPaymentRequired, code == http.StatusForbidden, code == http.StatusNotFound,
		code >= 300 && code < 400:
	default:
		f.kind = harness
	}
	return f
}
