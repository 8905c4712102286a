package topology

import (
	"slices"
	"sort"

	"refbox/tui/canvas"
)

// Directions, clockwise.
const (
	east = iota
	south
	west
	north
)

var step = [4]Point{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}

// What a way costs: cells are twice as high as wide, and calm beats short.
const (
	costX      = 2
	costY      = 4
	costBend   = 9
	costCross  = 14
	costNear   = 3 // beside a node that is not the link's, or along another link
	maxEdge    = 64
	unreached  = int32(1) << 30
	nobody     = int16(0)
	everything = int16(-1)
)

// router finds ways on a grid of cells. Ways claim the cells they use, by direction;
// a cell claimed in one direction can be crossed in the other. A state of the search is
// a cell and the direction in which it was entered.
type router struct {
	w, h    int
	node    []int16 // node+1 that covers the cell
	across  []int16 // link+1 that runs east-west, everything where none may
	down    []int16
	rects   []canvas.Rect
	form    Form
	work    *int // states that may still be visited
	dist    []int32
	from    []int32
	goal    []int32 // what ending in a state costs, plus one; 0 for no goal
	touched []int32
	goals   []int32
	queue   [maxEdge][]int32 // by dist and the distance that is left at least
	pending int
	a, b    int
	near    canvas.Rect // the target and the cells around it
}

func newRouter(w, h int, rects []canvas.Rect, form Form, work *int) *router {
	r := &router{w: w, h: h, rects: rects, form: form, work: work,
		node: make([]int16, w*h), across: make([]int16, w*h), down: make([]int16, w*h),
		dist: make([]int32, w*h*4), from: make([]int32, w*h*4), goal: make([]int32, w*h*4)}
	for i := range r.dist {
		r.dist[i] = unreached
	}
	for i, rc := range rects {
		for y := rc.Y; y < rc.Y+rc.H; y++ {
			for x := rc.X; x < rc.X+rc.W; x++ {
				r.node[y*w+x] = int16(i + 1)
			}
		}
	}
	return r
}

// free forgets all ways.
func (r *router) free() {
	clear(r.across)
	clear(r.down)
}

// port is a cell beside a node, the direction away from the node, and what it costs.
type port struct {
	cell, dir int
	cost      int32
}

func (r *router) ports(n int, visit func(port)) {
	rc := r.rects[n]
	cell := func(x, y, dir, off int) {
		if x >= 0 && y >= 0 && x < r.w && y < r.h {
			i := y*r.w + x
			if r.node[i] == nobody && r.across[i] == nobody && r.down[i] == nobody {
				visit(port{i, dir, int32(off)})
			}
		}
	}
	inner := 0 // rows of an outline, which have no port at their sides
	if r.form <= Boxed {
		inner = 1
	}
	for y := rc.Y + inner; y < rc.Y+rc.H-inner; y++ {
		off := abs(2*y+1-2*rc.Y-rc.H) * 2
		cell(rc.X+rc.W, y, east, off)
		cell(rc.X-1, y, west, off)
	}
	for x := rc.X + 1; x < rc.X+rc.W-1; x++ {
		off := abs(2*x+1-2*rc.X-rc.W) / 2
		cell(x, rc.Y+rc.H, south, off)
		cell(x, rc.Y-1, north, off)
	}
}

func abs(v int) int { return max(v, -v) }

// left is the least that the way from cell (x, y) to the target still costs.
func (r *router) left(x, y int) int32 {
	dx := max(0, r.near.X-x, x-r.near.X-r.near.W+1)
	dy := max(0, r.near.Y-y, y-r.near.Y-r.near.H+1)
	return int32(costX*dx + costY*dy)
}

func (r *router) push(s, from, d int32, x, y int) {
	if d >= r.dist[s] {
		return
	}
	if r.dist[s] == unreached {
		r.touched = append(r.touched, s)
	}
	r.dist[s], r.from[s] = d, from
	q := (d + r.left(x, y)) % maxEdge
	r.queue[q] = append(r.queue[q], s)
	r.pending++
}

// begin sets the search up and returns the least estimate, or false without ports.
func (r *router) begin(a, b int) (int32, bool) {
	for _, s := range r.touched {
		r.dist[s] = unreached
	}
	for _, s := range r.goals {
		r.goal[s] = 0
	}
	r.touched, r.goals, r.pending = r.touched[:0], r.goals[:0], 0
	for i := range r.queue {
		r.queue[i] = r.queue[i][:0]
	}
	r.a, r.b = a, b
	t := r.rects[b]
	r.near = canvas.Rect{X: t.X - 1, Y: t.Y - 1, W: t.W + 2, H: t.H + 2}
	// A loop leaves through the top or the bottom and comes back through a side.
	loop := a == b
	r.ports(b, func(p port) {
		if !loop || p.dir == east || p.dir == west {
			s := int32(p.cell*4 + (p.dir+2)%4)
			r.goal[s] = min(p.cost, maxEdge/2) + 1
			r.goals = append(r.goals, s)
		}
	})
	if len(r.goals) == 0 {
		return 0, false
	}
	least, most := unreached, int32(0)
	var starts []port
	r.ports(a, func(p port) {
		if !loop || p.dir == north || p.dir == south {
			f := min(p.cost, 8) + r.left(p.cell%r.w, p.cell/r.w)
			least, most = min(least, f), max(most, f)
			starts = append(starts, p)
		}
	})
	for _, p := range starts {
		x, y := p.cell%r.w, p.cell/r.w
		// The buckets hold a span of maxEdge: ports on the far side of a large node wait
		// for nothing, they are left out.
		if min(p.cost, 8)+r.left(x, y) < least+maxEdge {
			r.push(int32(p.cell*4+p.dir), -1, min(p.cost, 8), x, y)
		}
	}
	return least, len(starts) > 0
}

// route returns the cheapest way from node a to node b, or nil, and its cost.
func (r *router) route(a, b int) (Path, int32) {
	f, ok := r.begin(a, b)
	if !ok {
		return nil, 0
	}
	best, bestCost := int32(-1), unreached
	for ; r.pending > 0 && f < bestCost; f++ {
		for q := &r.queue[f%maxEdge]; len(*q) > 0; {
			s := (*q)[len(*q)-1]
			*q = (*q)[:len(*q)-1]
			r.pending--
			d := r.dist[s]
			cell := int(s / 4)
			x, y := cell%r.w, cell/r.w
			if d < 0 || d+r.left(x, y) != f {
				continue
			}
			*r.work--
			if extra := r.goal[s]; extra > 0 && r.from[s] >= 0 && d+extra-1 < bestCost {
				best, bestCost = s, d+extra-1
			}
			r.expand(s, d, x, y)
		}
	}
	if best < 0 {
		return nil, 0
	}
	var path Path
	for s := best; s >= 0; s = r.from[s] {
		c := int(s / 4)
		path = append(path, Point{c % r.w, c / r.w})
	}
	slices.Reverse(path)
	seen := make(map[Point]bool, len(path))
	for _, c := range path {
		if seen[c] {
			return nil, 0 // it would cross itself
		}
		seen[c] = true
	}
	return path, bestCost
}

// expand steps out of state s. The way may turn in the cell, unless it crosses another
// there.
func (r *router) expand(s, d int32, x, y int) {
	cell, dir := int(s/4), int(s%4)
	crossing := r.across[cell] != nobody || r.down[cell] != nobody
	for turn := -1; turn <= 1; turn++ {
		if crossing && turn != 0 {
			continue
		}
		out := (dir + turn + 4) % 4
		nx, ny := x+step[out].X, y+step[out].Y
		if nx < 0 || ny < 0 || nx >= r.w || ny >= r.h {
			continue
		}
		next := ny*r.w + nx
		if r.node[next] != nobody {
			continue
		}
		mine, other := r.across, r.down
		cost := int32(costX)
		if out == south || out == north {
			mine, other = r.down, r.across
			cost = costY
		}
		if mine[next] != nobody || other[next] == everything {
			continue
		}
		if other[next] != nobody {
			cost += costCross
		}
		if turn != 0 {
			if r.goal[next*4+out] > 0 {
				continue // the head stands at the end of a straight line, which shows the kind
			}
			cost += costBend
		}
		cost += r.beside(nx, ny, out)
		r.push(int32(next*4+out), s, d+cost, nx, ny)
	}
}

// beside is the price of running along something.
func (r *router) beside(x, y, dir int) int32 {
	cost := int32(0)
	for _, side := range [2]int{(dir + 1) % 4, (dir + 3) % 4} {
		sx, sy := x+step[side].X, y+step[side].Y
		if sx < 0 || sy < 0 || sx >= r.w || sy >= r.h {
			continue
		}
		c := sy*r.w + sx
		if n := int(r.node[c]); n != 0 {
			cost += costNear
			if n-1 != r.a && n-1 != r.b {
				cost += costNear
			}
		}
		along := r.across
		if dir == south || dir == north {
			along = r.down
		}
		if along[c] != nobody {
			cost += costNear
		}
	}
	return cost
}

// claim marks the cells of link l's way; release frees them.
func (r *router) claim(l int, p Path) { r.mark(p, int16(l+1)) }

func (r *router) release(p Path) { r.mark(p, nobody) }

func (r *router) mark(p Path, as int16) {
	for i, c := range p {
		cell := c.Y*r.w + c.X
		var in, out Point
		if i > 0 {
			in = Point{c.X - p[i-1].X, c.Y - p[i-1].Y}
		}
		if i < len(p)-1 {
			out = Point{p[i+1].X - c.X, p[i+1].Y - c.Y}
		}
		turns := i > 0 && i < len(p)-1 && in != out
		ends := i == 0 || i == len(p)-1
		if turns || ends {
			// Corners, ends and heads let nothing through.
			v := as
			if as != nobody {
				v = everything
			}
			r.across[cell], r.down[cell] = v, v
			continue
		}
		if in.X != 0 {
			r.across[cell] = as
		} else {
			r.down[cell] = as
		}
	}
}

// routeAll finds ways for all links, ends giving the two nodes of each. Links that fail
// go first in the next round; then each is tried again with the others in place. It
// stops improving when work is used up.
func routeAll(w, h int, rects []canvas.Rect, form Form, ends [][2]int, work *int) (paths []Path, failed int, cost int32) {
	order := make([]int, 0, len(ends))
	for i, e := range ends {
		if e[0] >= 0 && e[1] >= 0 {
			order = append(order, i)
		}
	}
	length := func(i int) int {
		a, b := rects[ends[i][0]], rects[ends[i][1]]
		return abs(2*a.X+a.W-2*b.X-b.W) + 2*abs(2*a.Y+a.H-2*b.Y-b.H)
	}
	sort.SliceStable(order, func(i, j int) bool { return length(order[i]) < length(order[j]) })
	failed = len(ends) + 1
	r := newRouter(w, h, rects, form, work)
	for range 4 {
		r.free()
		try := make([]Path, len(ends))
		costs := make([]int32, len(ends))
		var lost, kept []int
		for _, l := range order {
			try[l], costs[l] = r.route(ends[l][0], ends[l][1])
			if try[l] == nil {
				lost = append(lost, l)
				continue
			}
			kept = append(kept, l)
			r.claim(l, try[l])
		}
		for _, l := range order {
			if *work <= 0 {
				break
			}
			if try[l] != nil {
				r.release(try[l])
			}
			if p, c := r.route(ends[l][0], ends[l][1]); p != nil {
				try[l], costs[l] = p, c
			}
			if try[l] != nil {
				r.claim(l, try[l])
			}
		}
		n, sum := len(ends)-len(order), int32(0) // links to nowhere are lost
		for _, l := range order {
			if try[l] == nil {
				n++
			}
			sum += costs[l]
		}
		if n < failed || n == failed && sum < cost {
			paths, failed, cost = try, n, sum
		}
		if len(lost) == 0 || n == 0 || *work <= 0 {
			break
		}
		order = append(lost, kept...)
	}
	return paths, failed, cost
}
