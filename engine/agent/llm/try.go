package llm

import (
	"context"
	"errors"
	"fmt"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"refbox/engine/agent"
)

// Trial is what one short question showed.
type Trial struct {
	Took         time.Duration
	Called       bool // the model called the tool
	InputTokens  *uint64
	OutputTokens *uint64
	CostMicroUSD *uint64 // nil for unknown
}

// Tokens is the usage in words.
func (t Trial) Tokens() string {
	if t.InputTokens == nil || t.OutputTokens == nil {
		return "tokens unknown"
	}
	return fmt.Sprintf("%d + %d tokens", *t.InputTokens, *t.OutputTokens)
}

// Try asks the model one short question, once.
func Try(ctx context.Context, cfg Config) (Trial, error) {
	if err := cfg.Check(); err != nil {
		return Trial{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c := newClient(cfg)
	defer c.close()
	began := time.Now()
	//lint:ignore SA1019 vLLM and Ollama know no other name for it
	a, bad := c.stream(ctx, openai.ChatCompletionRequest{Model: cfg.Model, Tools: tools(nil), MaxTokens: cfg.MaxTokens,
		Messages: []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: `Call the tool with the command "true".`}}})
	t := Trial{Took: time.Since(began)}
	if bad != nil {
		return t, errors.New(agent.NewSecrets(cfg.Key).HideText(bad.text))
	}
	t.Called = len(a.calls) > 0
	t.InputTokens, t.OutputTokens, t.CostMicroUSD = a.spent.in, a.spent.out, a.spent.cost
	return t, nil
}
