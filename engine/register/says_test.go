package register

import (
	"strings"
	"testing"
)

// A finding that says the same of today as of the design says what differs; no other one
// is changed.
func TestSaysWhatTheDesignAdds(t *testing.T) {
	for detail, more := range map[string]bool{
		"Application database reaches 30s / site 30s only once app-db-bucket is running. Today it is 30s / site 30s.": true,
		"Application database reaches 30s / site 30s only once a, b are running. Today it is 30s / site none.":        false,
		"Nobody has ever restored Application database.":                                                              false,
	} {
		f := Finding{Code: "design-not-adopted", Detail: detail}
		if got := f.Says(); strings.Contains(got, "off-site") != more || !strings.HasPrefix(got, detail) {
			t.Errorf("%q says %q", detail, got)
		}
		f.Code = "restore-never-drilled"
		if got := f.Says(); got != detail {
			t.Errorf("another code says %q", got)
		}
	}
}
