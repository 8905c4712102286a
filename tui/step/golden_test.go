package step

import (
	"fmt"
	"testing"

	"refbox/tui/canvas"
	"refbox/tui/viewtest"
)

func (x *stage) goTo(step int) {
	x.t.Helper()
	x.press(":")
	x.answer(fmt.Sprint(step))
	x.at(step)
}

var tours = []struct {
	name string
	go_  func(x *stage)
}{
	{"message", func(x *stage) { x.goTo(demoWords) }},
	{"command", func(x *stage) { x.goTo(demoMask) }},
	{"colors", func(x *stage) { x.goTo(demoColors) }},
	{"edit", func(x *stage) { x.goTo(demoEdit) }},
	{"json", func(x *stage) { x.goTo(demoJSON) }},
	{"giant", func(x *stage) { x.goTo(demoGiant) }},
	{"totals", func(x *stage) { x.goTo(demoMask); x.press("U") }},
	{"filter", func(x *stage) { x.press("F", "j", "enter") }},
	{"subagent", func(x *stage) { x.goTo(demoDelegate); x.press("enter", "j") }},
}

func TestGoldenFrames(t *testing.T) {
	path := demo(t)
	for _, size := range [][2]int{{80, 23}, {120, 33}, {200, 59}} {
		for _, tour := range tours {
			name := fmt.Sprintf("%s-%dx%d", tour.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				x := opened(t, path, size[0], size[1])
				tour.go_(x)
				x.golden(name)
			})
		}
	}
}

func TestGoldenLook(t *testing.T) {
	path := demo(t)
	for name, out := range map[string]canvas.Output{
		"dark":  {Profile: canvas.ANSI256, Theme: canvas.Dark()},
		"light": {Profile: canvas.ANSI256, Theme: canvas.Light()},
		"mono":  {Profile: canvas.Mono, Theme: canvas.Dark()},
		"ascii": {Profile: canvas.Plain, Theme: canvas.Dark(), ASCII: true},
	} {
		t.Run(name, func(t *testing.T) {
			x := opened(t, path, 120, 33)
			x.out = out
			x.goTo(demoMask)
			viewtest.Golden(t, "look-"+name, x.text())
		})
	}
}

// What others recorded, as it is.
func TestGoldenSamples(t *testing.T) {
	for name, path := range map[string]string{
		"claude":    viewtest.Shared(t, "transcripts", "claude-code", "edge_cases.jsonl"),
		"codex":     viewtest.Shared(t, "transcripts", "codex", "standard_session.jsonl"),
		"swe":       viewtest.Shared(t, "transcripts", "swe-agent", "pydicom__pydicom-1458.traj"),
		"inspect":   viewtest.Shared(t, "transcripts", "inspect", "log_message_deduplication.eval"),
		"reference": viewtest.Shared(t, "recordings", "infra-core-primary-failover-round-002", "luna-failover-engineer-transcript.json"),
		"analysis":  viewtest.Shared(t, "seeds", "analysis.json"),
	} {
		for _, size := range [][2]int{{80, 23}, {120, 33}, {200, 59}} {
			t.Run(fmt.Sprintf("%s-%d", name, size[0]), func(t *testing.T) {
				x := opened(t, path, size[0], size[1])
				x.press("G", "M", "alt+M")
				x.golden(fmt.Sprintf("sample-%s-%dx%d", name, size[0], size[1]))
			})
		}
	}
	x := opened(t, viewtest.Shared(t, "transcripts", "claude-code", "edge_cases.jsonl"), 120, 33)
	x.press("i", "j", "j")
	x.golden("integrity-120x33")
}

func TestGoldenBeside(t *testing.T) {
	dir := viewtest.Shared(t, "recordings", "infra-core-primary-failover-round-002")
	for _, size := range [][2]int{{80, 23}, {120, 33}, {200, 59}} {
		s, err := Open(dir+"/luna-failover-engineer-transcript.json", dir+"/glm-failover-engineer-transcript.json", 24)
		if err != nil {
			t.Fatal(err)
		}
		x := stageOf(t, s, size[0], size[1])
		x.at(24)
		x.golden(fmt.Sprintf("beside-%dx%d", size[0], size[1]))
	}
}
