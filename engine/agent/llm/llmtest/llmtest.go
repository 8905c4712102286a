// Package llmtest is an endpoint for tests: a server on this host that speaks
// OpenAI's chat completions and plays a scripted model, with the failures of
// real ones.
package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Turn is what the scripted model answers. Which turn is due is told by the
// conversation: as many answers as it has are behind it; so a request that is
// sent again gets the same turn.
type Turn struct {
	Text      string
	Reasoning string
	Refusal   string
	Commands  []string // each a call of the shell tool
	Raw       *string  // a call's arguments as they are, in place of Commands
	Tool      string   // the name that Raw is for; "" for the shell tool's
	Finish    string   // "" for tool_calls or stop
	NoUsage   bool     // the answer's usage is not told
	Cost      float64  // dollars; 0 for not told
}

// Fault is what goes wrong with one request.
type Fault struct {
	Status     int           // of an error; 0 for none
	Body       string        // of an error
	RetryAfter string        // the header
	Cut        bool          // the stream ends in the middle
	Reset      bool          // the connection does
	InStream   string        // an error in the stream, as JSON
	Slow       time.Duration // before the first byte
	Stall      bool          // nothing comes, until the client goes away
	Garbage    bool          // what is no JSON in the stream
}

// Server is the endpoint. Its fields are set before it is asked.
type Server struct {
	Plan   []Turn
	Faults map[int]Fault // by the request's number, from 0
	Always *Fault        // goes wrong with every request
	Key    string        // that is demanded; "" for none
	// Context is how many bytes of messages the model takes; 0 for any.
	Context int

	http *httptest.Server
	mu   sync.Mutex
	asks []Request
}

// Request is what was asked.
type Request struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Calls   []any           `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	Stream bool   `json:"stream"`
	Effort string `json:"reasoning_effort"`
	At     time.Time
	Body   []byte `json:"-"`
}

// Start starts the server; Close ends it.
func (s *Server) Start() *Server {
	s.http = httptest.NewServer(s)
	return s
}

// Endpoint is the API's base.
func (s *Server) Endpoint() string { return s.http.URL + "/v1" }

// Close ends the server and what it still answers.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Requests are those that came so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.asks...)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.Key {
		got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		fail(w, http.StatusUnauthorized, fmt.Sprintf(`{"error":{"message":"Incorrect API key provided: %s","type":"invalid_request_error","code":"invalid_api_key"}}`, got))
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/models"):
		fmt.Fprint(w, `{"object":"list","data":[{"id":"scripted","object":"model"}]}`)
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		s.complete(w, r)
	default:
		fail(w, http.StatusNotFound, `{"error":{"message":"no such thing"}}`)
	}
}

func fail(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	var q Request
	var body strings.Builder
	if err := json.NewDecoder(http.MaxBytesReader(w, readTee{r.Body, &body}, 64<<20)).Decode(&q); err != nil {
		fail(w, http.StatusBadRequest, `{"error":{"message":"the request is no JSON"}}`)
		return
	}
	q.Body, q.At = []byte(body.String()), time.Now()
	s.mu.Lock()
	n := len(s.asks)
	s.asks = append(s.asks, q)
	s.mu.Unlock()
	f := s.Faults[n]
	if s.Always != nil {
		f = *s.Always
	}
	if f.Slow > 0 {
		select {
		case <-time.After(f.Slow):
		case <-r.Context().Done():
			return
		}
	}
	size, turn := 0, 0
	for _, m := range q.Messages {
		size += len(m.Content)
		if m.Role == "assistant" {
			turn++
		}
	}
	switch {
	case f.Stall:
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	case f.Reset:
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		fail(w, f.Status, f.Body)
		return
	case s.Context > 0 && size > s.Context:
		fail(w, http.StatusBadRequest, fmt.Sprintf(`{"error":{"message":"This model's maximum context length is %d tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, s.Context))
		return
	}
	t := Turn{Text: "Done."}
	if turn < len(s.Plan) {
		t = s.Plan[turn]
	}
	if len(q.Tools) == 0 { // as for a title
		t = Turn{Text: "A race"}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := &stream{w: w, model: q.Model}
	out.play(t, f, toolOf(q), size)
}

type readTee struct {
	r interface{ Read([]byte) (int, error) }
	w *strings.Builder
}

func (t readTee) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.w.Write(p[:n])
	return n, err
}
func (readTee) Close() error { return nil }

// toolOf is the shell among the tools, by the names that agents give it.
func toolOf(q Request) string {
	for _, t := range q.Tools {
		switch t.Function.Name {
		case "shell", "bash", "Bash", "shell_command":
			return t.Function.Name
		}
	}
	return "shell"
}

// stream writes an answer's pieces.
type stream struct {
	w     http.ResponseWriter
	model string
}

func (o *stream) send(v any) {
	data, _ := json.Marshal(v) // maps of plain values have no error
	fmt.Fprintf(o.w, "data: %s\n\n", data)
	o.w.(http.Flusher).Flush()
}

type obj = map[string]any

func (o *stream) delta(d obj, finish any) {
	o.send(obj{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": o.model,
		"choices": []obj{{"index": 0, "delta": d, "finish_reason": finish}}})
}

func (o *stream) play(t Turn, f Fault, tool string, size int) {
	fmt.Fprint(o.w, ": keep-alive\n\n")
	o.delta(obj{"role": "assistant", "content": ""}, nil)
	if t.Reasoning != "" {
		o.delta(obj{"reasoning_content": t.Reasoning}, nil)
	}
	for _, word := range strings.SplitAfter(t.Text, " ") {
		if word != "" {
			o.delta(obj{"content": word}, nil)
		}
	}
	if t.Refusal != "" {
		o.delta(obj{"refusal": t.Refusal}, nil)
	}
	switch {
	case f.Cut:
		return
	case f.Garbage:
		fmt.Fprint(o.w, "data: {\"choices\":[{\n\n")
		return
	case f.InStream != "":
		fmt.Fprintf(o.w, "data: {\"error\":%s}\n\n", f.InStream)
		return
	}
	var args []string
	for _, c := range t.Commands {
		a, _ := json.Marshal(obj{"command": c, "description": "a step"})
		args = append(args, string(a))
	}
	if t.Raw != nil {
		args = []string{*t.Raw}
		if t.Tool != "" {
			tool = t.Tool
		}
	}
	for i, a := range args {
		id := fmt.Sprintf("call_%d_%d", time.Now().UnixNano(), i)
		o.delta(obj{"tool_calls": []obj{{"index": i, "id": id, "type": "function", "function": obj{"name": tool, "arguments": ""}}}}, nil)
		for len(a) > 0 { // in pieces, as real ones do
			n := min(7, len(a))
			for n < len(a) && !utf8.RuneStart(a[n]) {
				n++
			}
			o.delta(obj{"tool_calls": []obj{{"index": i, "function": obj{"arguments": a[:n]}}}}, nil)
			a = a[n:]
		}
	}
	finish := t.Finish
	switch {
	case finish != "":
	case len(args) > 0:
		finish = "tool_calls"
	default:
		finish = "stop"
	}
	o.delta(obj{}, finish)
	if !t.NoUsage {
		u := obj{"prompt_tokens": size / 4, "completion_tokens": 10 * max(1, len(args)), "total_tokens": size/4 + 10*max(1, len(args)),
			"prompt_tokens_details": obj{"cached_tokens": 0}}
		if t.Cost > 0 {
			u["cost"] = t.Cost
		}
		o.send(obj{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": o.model, "choices": []obj{}, "usage": u})
	}
	fmt.Fprint(o.w, "data: [DONE]\n\n")
}
