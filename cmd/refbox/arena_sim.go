package main

import (
	"maps"

	"refbox/vm/sim"
	"refbox/vm/sim/failover"
	"refbox/vm/sim/hello"
)

// simConfig is what the simulated machines can run: the programs of the bundled
// arenas that have a twin.
func simConfig() sim.Config {
	programs := failover.Programs()
	maps.Copy(programs, hello.Programs())
	return sim.Config{Programs: programs}
}
