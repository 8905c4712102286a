package canvas

// Rect is an area of cells: X to the right, Y down, W and H never meant negative.
type Rect struct{ X, Y, W, H int }

// Empty reports whether r holds no cell.
func (r Rect) Empty() bool { return r.W <= 0 || r.H <= 0 }

// Contains reports whether the cell (x, y) is in r; layout rects and mouse hits meet here.
func (r Rect) Contains(x, y int) bool {
	return x >= r.X && y >= r.Y && x < r.X+r.W && y < r.Y+r.H
}

// Intersect returns the cells that are in both, or an empty Rect.
func (r Rect) Intersect(o Rect) Rect {
	x0, y0 := max(r.X, o.X), max(r.Y, o.Y)
	x1, y1 := min(r.X+r.W, o.X+o.W), min(r.Y+r.H, o.Y+o.H)
	if x1 <= x0 || y1 <= y0 {
		return Rect{X: x0, Y: y0}
	}
	return Rect{x0, y0, x1 - x0, y1 - y0}
}

// Overlaps reports whether the two share a cell.
func (r Rect) Overlaps(o Rect) bool { return !r.Intersect(o).Empty() }

// Inset returns r without n cells on each side.
func (r Rect) Inset(n int) Rect {
	return Rect{r.X + n, r.Y + n, max(0, r.W-2*n), max(0, r.H-2*n)}
}

// CutTop splits off the first n rows (at most all of them).
func (r Rect) CutTop(n int) (top, rest Rect) {
	n = max(0, min(n, r.H))
	return Rect{r.X, r.Y, r.W, n}, Rect{r.X, r.Y + n, r.W, r.H - n}
}

// CutBottom splits off the last n rows.
func (r Rect) CutBottom(n int) (bottom, rest Rect) {
	n = max(0, min(n, r.H))
	return Rect{r.X, r.Y + r.H - n, r.W, n}, Rect{r.X, r.Y, r.W, r.H - n}
}

// CutLeft splits off the first n columns.
func (r Rect) CutLeft(n int) (left, rest Rect) {
	n = max(0, min(n, r.W))
	return Rect{r.X, r.Y, n, r.H}, Rect{r.X + n, r.Y, r.W - n, r.H}
}

// CutRight splits off the last n columns.
func (r Rect) CutRight(n int) (right, rest Rect) {
	n = max(0, min(n, r.W))
	return Rect{r.X + r.W - n, r.Y, n, r.H}, Rect{r.X, r.Y, r.W - n, r.H}
}
