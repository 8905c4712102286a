package topology

import (
	"sort"

	"refbox/tui/canvas"
)

// spacing is the room that placement leaves: between any two nodes, between linked
// ones, and at the area's edges.
type spacing struct{ x, y, linkX, linkY, marginX, marginY int }

// placement separates nodes pair by pair, each along one axis, and solves each axis as
// a longest path.
type placement struct {
	n       int
	size    [2][]int
	want    [2][]int // the wanted left or top edge
	limit   [2]int
	gap     [2][]int // n×n
	axis    []int8   // n×n: along which axis the pair is separated
	flipped []bool   // n×n
	order   [2][]int
	rank    [2][]int
}

// aspect is how much higher than wide a cell is, times two.
const aspect = 5

// place returns a box for every node, or false if they do not fit. With align, nodes
// that are nearly on one row or column are brought onto it, so that links run straight.
func place(g Graph, sizes []Point, linked map[[2]int]bool, w, h int, sp spacing, align bool) ([]canvas.Rect, bool) {
	n := len(sizes)
	p := placement{n: n, limit: [2]int{w, h}, axis: make([]int8, n*n), flipped: make([]bool, n*n)}
	margin := [2]int{sp.marginX, sp.marginY}
	for a := range 2 {
		p.size[a], p.want[a], p.gap[a] = make([]int, n), make([]int, n), make([]int, n*n)
		lo, hi := 0.0, 0.0
		at := func(i int) float64 {
			v := g.Nodes[i].X
			if a == 1 {
				v = g.Nodes[i].Y
			}
			return max(0, min(100, v))
		}
		for i := range n {
			if i == 0 || at(i) < lo {
				lo = at(i)
			}
			if i == 0 || at(i) > hi {
				hi = at(i)
			}
			p.size[a][i] = sizes[i].X
			if a == 1 {
				p.size[a][i] = sizes[i].Y
			}
			if p.size[a][i] > p.limit[a] {
				return nil, false
			}
		}
		for i := range n {
			f := 0.5
			if hi > lo {
				f = (at(i) - lo) / (hi - lo)
			}
			room := p.limit[a] - 2*margin[a] - p.size[a][i]
			p.want[a][i] = max(0, margin[a]+int(f*float64(room)+0.5))
		}
		p.sort(a, at)
		if align {
			p.align(a)
		}
	}
	for i := range n {
		for j := range n {
			p.gap[0][i*n+j], p.gap[1][i*n+j] = sp.x, sp.y
			if linked[[2]int{i, j}] || linked[[2]int{j, i}] {
				p.gap[0][i*n+j], p.gap[1][i*n+j] = sp.linkX, sp.linkY
			}
		}
	}
	for i := range n {
		for j := range i {
			a := int8(0)
			if p.slack(1, i, j)*aspect > p.slack(0, i, j)*2 {
				a = 1
			}
			p.axis[i*n+j], p.axis[j*n+i] = a, a
		}
	}
	for range n * n {
		x, okX := p.solve(0)
		y, okY := p.solve(1)
		if okX && okY {
			rects := make([]canvas.Rect, n)
			for i := range rects {
				rects[i] = canvas.Rect{X: x[i], Y: y[i], W: sizes[i].X, H: sizes[i].Y}
			}
			return rects, true
		}
		if !okX && !p.flip(0) || !okY && !p.flip(1) {
			return nil, false
		}
	}
	return nil, false
}

// sort orders the nodes along axis a by their wanted centres, then by percent.
func (p *placement) sort(a int, percent func(int) float64) {
	order := make([]int, p.n)
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool {
		i, j = order[i], order[j]
		if ci, cj := p.centre(a, i), p.centre(a, j); ci != cj {
			return ci < cj
		}
		return percent(i) < percent(j)
	})
	p.order[a], p.rank[a] = order, make([]int, p.n)
	for r, i := range order {
		p.rank[a][i] = r
	}
}

// centre is twice the wanted centre of i on axis a.
func (p *placement) centre(a, i int) int { return 2*p.want[a][i] + p.size[a][i] }

// align gives one centre to each group of nodes whose centres are near on axis a: on
// one row if less than a node's height apart, in one column if a few cells apart.
func (p *placement) align(a int) {
	order := p.order[a]
	for from := 0; from < p.n; {
		first, to, sum := order[from], from+1, p.centre(a, order[from])
		near := 6
		if a == 1 {
			near = 2 * p.size[1][first]
		}
		for to < p.n && p.centre(a, order[to])-p.centre(a, first) <= near {
			sum += p.centre(a, order[to])
			to++
		}
		mean := sum / (to - from)
		for _, i := range order[from:to] {
			p.want[a][i] = max(0, min((mean-p.size[a][i]+1)/2, p.limit[a]-p.size[a][i]))
		}
		from = to
	}
}

// slack is how far apart i and j are wanted along axis a, beyond their gap.
func (p *placement) slack(a, i, j int) int {
	if p.rank[a][i] > p.rank[a][j] {
		i, j = j, i
	}
	return p.want[a][j] - p.want[a][i] - p.size[a][i] - p.gap[a][i*p.n+j]
}

// bounds returns the least and the greatest place of every node on axis a.
func (p *placement) bounds(a int) (lo, hi []int) {
	lo, hi = make([]int, p.n), make([]int, p.n)
	for r, j := range p.order[a] {
		for _, i := range p.order[a][:r] {
			if int(p.axis[i*p.n+j]) == a {
				lo[j] = max(lo[j], lo[i]+p.size[a][i]+p.gap[a][i*p.n+j])
			}
		}
	}
	for r := p.n - 1; r >= 0; r-- {
		i := p.order[a][r]
		hi[i] = p.limit[a] - p.size[a][i]
		for _, j := range p.order[a][r+1:] {
			if int(p.axis[i*p.n+j]) == a {
				hi[i] = min(hi[i], hi[j]-p.size[a][i]-p.gap[a][i*p.n+j])
			}
		}
	}
	return lo, hi
}

// solve places the nodes along axis a as near as it can to where they are wanted.
func (p *placement) solve(a int) ([]int, bool) {
	lo, hi := p.bounds(a)
	at := make([]int, p.n)
	for r, j := range p.order[a] {
		least := lo[j]
		for _, i := range p.order[a][:r] {
			if int(p.axis[i*p.n+j]) == a {
				least = max(least, at[i]+p.size[a][i]+p.gap[a][i*p.n+j])
			}
		}
		if least > hi[j] {
			return nil, false
		}
		at[j] = max(least, min(p.want[a][j], hi[j]))
	}
	return at, true
}

// flip moves one pair on a chain that is too long for axis a to the other axis: the
// one that is the least too near there.
func (p *placement) flip(a int) bool {
	lo, hi := p.bounds(a)
	best, bi, bj := -1<<30, -1, -1
	for r, j := range p.order[a] {
		for _, i := range p.order[a][:r] {
			k := i*p.n + j
			if int(p.axis[k]) != a || p.flipped[k] {
				continue
			}
			// The pair is on such a chain if its own distance cannot be kept.
			if lo[i]+p.size[a][i]+p.gap[a][k] > hi[j] {
				if s := p.slack(1-a, i, j); s > best {
					best, bi, bj = s, i, j
				}
			}
		}
	}
	if bi < 0 {
		return false
	}
	for _, k := range []int{bi*p.n + bj, bj*p.n + bi} {
		p.axis[k], p.flipped[k] = int8(1-a), true
	}
	return true
}
