package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

const toolName = "shell"

// call is what the model asks for.
type call struct {
	Command string `json:"command"`
	Machine string `json:"machine"`
	Seconds int    `json:"seconds"`
}

// tools is the one tool, as the endpoint is told of it.
func tools(machines []string) []openai.Tool {
	properties := map[string]any{
		"command": map[string]any{"type": "string", "description": "what a POSIX shell on the machine runs, as root"},
		"seconds": map[string]any{"type": "integer", "description": "after which the command is cut"},
	}
	if len(machines) > 1 {
		properties["machine"] = map[string]any{"type": "string", "enum": machines, "description": "where it runs"}
	}
	return []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
		Name:        toolName,
		Description: "Runs a command on the machine and returns its output and exit status.",
		Parameters:  map[string]any{"type": "object", "properties": properties, "required": []string{"command"}},
	}}}
}

// parseCall understands a call, or says what is wrong with it in words that the
// model can act on.
func parseCall(c openai.ToolCall, finish openai.FinishReason) (call, error) {
	var a call
	if c.Function.Name != toolName {
		return a, fmt.Errorf("there is no tool %q, only %q", brief(c.Function.Name), toolName)
	}
	if err := json.Unmarshal([]byte(c.Function.Arguments), &a); err != nil {
		if finish == openai.FinishReasonLength {
			return a, errors.New("its arguments were cut for their length; call the tool with a shorter command")
		}
		return a, fmt.Errorf(`its arguments are not JSON such as {"command": "uptime"}: %w`, err)
	}
	if strings.TrimSpace(a.Command) == "" {
		return a, errors.New("it has no command")
	}
	if a.Seconds < 0 {
		return a, errors.New("seconds is less than 0")
	}
	return a, nil
}
