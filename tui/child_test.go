package tui

const childEnv = "REFBOX_TUI_TEST_CHILD"

func childMain() {}
