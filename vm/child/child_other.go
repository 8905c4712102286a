//go:build !linux

package child

import "os/exec"

func start(cmd *exec.Cmd, ended func()) error {
	started := make(chan error)
	go run(cmd, started, ended)
	return <-started
}
