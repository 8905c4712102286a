package heat

import (
	"testing"

	"go.uber.org/goleak"
)

// Whatever a heat started has ended when it returns, so nothing is left after all of
// them; they run side by side, and each alone could not tell.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
