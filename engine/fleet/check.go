package fleet

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"

	"refbox/engine/agent"
	"refbox/engine/agent/llm"
	"refbox/engine/text"
)

// Finding is what trying a player showed.
type Finding struct {
	Player  string `json:"player"`
	Adapter string `json:"adapter"`
	Model   string `json:"model,omitempty"`
	OK      bool   `json:"ok"`
	Detail  string `json:"detail"`
	// CostMicroUSD is what trying cost; null for unknown.
	CostMicroUSD *uint64 `json:"cost_microusd"`
	TookMS       *uint64 `json:"took_ms,omitempty"`
}

// Check tries every player without a heat, all at once: a script or a program is
// looked for, a model is asked one short question.
func (f *Fleet) Check(ctx context.Context) []Finding {
	out := make([]Finding, len(f.Players))
	var wg sync.WaitGroup
	for i, p := range f.Players {
		wg.Go(func() { out[i] = f.try(ctx, p) })
	}
	wg.Wait()
	return out
}

func (f *Fleet) try(ctx context.Context, p Player) Finding {
	out := Finding{Player: p.ID, Adapter: p.Adapter, Model: p.Model}
	nothing := uint64(0)
	no := func(err error) Finding {
		out.Detail = text.Line(err.Error())
		return out
	}
	keys, err := f.keysOf(p)
	if err != nil {
		out.CostMicroUSD = &nothing
		return no(err)
	}
	switch p.Adapter {
	case Script:
		out.CostMicroUSD, out.OK = &nothing, true
		out.Detail = "it is looked for when the arena is known"
		if strings.Contains(p.Script, "/") {
			s, err := p.script(nil)
			if err != nil {
				out.OK = false
				return no(err)
			}
			out.Detail = text.Count(len(s.Blocks), "block")
		}
	case LLM:
		t, err := llm.Try(ctx, p.llm(keys, f.Version))
		ms := uint64(t.Took.Milliseconds())
		out.TookMS, out.CostMicroUSD = &ms, t.CostMicroUSD
		if err != nil {
			return no(err)
		}
		out.OK = true
		out.Detail = fmt.Sprintf("answered in %d ms, %s", ms, t.Tokens())
		if !t.Called {
			out.Detail += "; it did not call the tool that it was told to call"
		}
	case Human:
		out.CostMicroUSD, out.OK = &nothing, true
		out.Detail = "whoever sits at the screen; the heat needs one"
	default:
		out.CostMicroUSD = &nothing
		c := agent.Command{Argv: p.Command}
		if err := c.Check(); err != nil {
			return no(err)
		}
		path, _ := exec.LookPath(p.Command[0]) // found a line above
		out.OK, out.Detail = true, "found "+text.Line(path)
		if len(p.Env) > 0 {
			out.Detail += "; set: " + strings.Join(p.Env, ", ")
		}
	}
	return out
}
