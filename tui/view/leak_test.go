package view

import (
	"testing"

	"go.uber.org/goleak"
)

// What the tests start has ended when they have.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
