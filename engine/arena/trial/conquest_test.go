package trial

import (
	"strings"
	"testing"

	"refbox/engine/arena"
)

func TestFields(t *testing.T) {
	for name, c := range map[string]struct{ players, want string }{
		"each once":          {"Ra Rb Rc Wa Wb Wc Xa Xb Xc", "Ra Wb Wc, Wa Rb Xc, Xa Xb Rc"},
		"no wrong ones":      {"Ra Rb Rc", "Ra Rb Rc"},
		"one wrong":          {"Ra Rb Rc Wb", "Ra Wb Rc, Ra Rb Rc"},
		"more wrong of one":  {"Ra Rb Rc Wa Xa Ya", "Ra Rb Rc, Wa Rb Rc, Xa Rb Rc, Ya Rb Rc"},
		"wrong ones in each": {"Ra Rb Rc Wa Wb Wc", "Ra Wb Wc, Wa Rb Rc"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &arena.Manifest{}
			for _, id := range []string{"a", "b", "c"} {
				m.Territories = append(m.Territories, arena.Territory{ID: id})
			}
			var all []seated
			for _, p := range strings.Fields(c.players) {
				x := arena.Trial{Name: p, Territory: p[1:], Result: arena.Eliminated}
				if p[0] == 'R' {
					x.Result = arena.Standing
				}
				m.Players = append(m.Players, x)
				all = append(all, seated{Trial: x})
			}
			var heats []string
			for _, group := range fields(m, all) {
				var names []string
				for _, x := range group {
					names = append(names, x.Name)
				}
				heats = append(heats, strings.Join(names, " "))
			}
			if got := strings.Join(heats, ", "); got != c.want {
				t.Errorf("%s", got)
			}
		})
	}
}
