package register

import "regexp"

// samePoints is a design-not-adopted whose recovery points are said twice.
var samePoints = regexp.MustCompile(` reaches (\S+ / site \S+) only once .* Today it is (\S+ / site \S+)\.$`)

// Says is the finding for people: its detail, whose words the reference fixes, and what
// they leave out where they say the same of today as of the design.
func (f *Finding) Says() string {
	if m := samePoints.FindStringSubmatch(f.Detail); f.Code == "design-not-adopted" && m != nil && m[1] == m[2] {
		return f.Detail + " The recovery points stay the same: what it adds is the off-site copy that the policy asks for."
	}
	return f.Detail
}
