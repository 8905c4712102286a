package tui

import (
	"context"

	tea "github.com/charmbracelet/bubbletea"
)

// feeder is a screen whose recording grows.
type feeder interface{ feed() <-chan struct{} }

// watch waits for the top screen's recording to grow. Each recording has one
// waiter, however many screens show it.
func (m *model) watch() tea.Cmd {
	f, ok := m.top().(feeder)
	if !ok {
		return nil
	}
	ch := f.feed()
	if ch == nil || m.watched[ch] {
		return nil
	}
	m.watched[ch] = true
	return waitFeed(m.ctx, ch)
}

func waitFeed(ctx context.Context, ch <-chan struct{}) tea.Cmd {
	return safe(func() tea.Msg {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-ch:
			if !open {
				return feedEndMsg{ch}
			}
			return feedMsg{ch}
		}
	})
}

// resized passes sizes on as they come.
func resized(ctx context.Context, sizes <-chan [2]int) tea.Cmd {
	if sizes == nil {
		return nil
	}
	return safe(func() tea.Msg {
		select {
		case s, ok := <-sizes:
			if !ok {
				return nil
			}
			size := func() tea.Msg { return tea.WindowSizeMsg{Width: s[0], Height: s[1]} }
			return tea.BatchMsg{size, resized(ctx, sizes)}
		case <-ctx.Done():
			return nil
		}
	})
}
