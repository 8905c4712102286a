package probe

import (
	"fmt"

	"go.starlark.net/syntax"
)

// rewrite puts the guards into a file. An error is about what has no guard.
func rewrite(f *syntax.File) error {
	r := &rewriter{}
	r.stmts(f.Stmts)
	return r.err
}

type rewriter struct{ err error }

func (r *rewriter) refuse(at syntax.Position, what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s", at, what)
	}
}

// guard is the call name(args...), where at stands.
func guard(name string, at syntax.Position, args ...syntax.Expr) syntax.Expr {
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: at, Name: name}, Lparen: at, Args: args, Rparen: at}
}

func operator(op syntax.Token, at syntax.Position, x, y syntax.Expr) syntax.Expr {
	token := &syntax.Literal{Token: syntax.INT, TokenPos: at, Raw: fmt.Sprint(int(op)), Value: int64(op)}
	return guard(guardBinary, at, token, x, y)
}

func (r *rewriter) stmts(list []syntax.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *syntax.AssignStmt:
			s.RHS = r.expr(s.RHS)
			r.assign(s)
		case *syntax.DefStmt:
			r.params(s.Params)
			r.stmts(s.Body)
		case *syntax.ExprStmt:
			s.X = r.expr(s.X)
		case *syntax.IfStmt:
			s.Cond = r.expr(s.Cond)
			r.stmts(s.True)
			r.stmts(s.False)
		case *syntax.ForStmt:
			r.target(s.Vars)
			s.X = r.expr(s.X)
			r.stmts(s.Body)
		case *syntax.WhileStmt:
			s.Cond = r.expr(s.Cond)
			r.stmts(s.Body)
		case *syntax.ReturnStmt:
			if s.Result != nil {
				s.Result = r.expr(s.Result)
			}
		}
	}
}

// augmented are the operators of augmented assignments.
var augmented = map[syntax.Token]syntax.Token{
	syntax.MINUS_EQ: syntax.MINUS, syntax.STAR_EQ: syntax.STAR, syntax.SLASH_EQ: syntax.SLASH,
	syntax.SLASHSLASH_EQ: syntax.SLASHSLASH, syntax.PERCENT_EQ: syntax.PERCENT,
}

// assign makes "x += y" the assignment of a guarded operation.
func (r *rewriter) assign(s *syntax.AssignStmt) {
	r.target(s.LHS)
	if s.Op == syntax.EQ {
		return
	}
	name, ok := s.LHS.(*syntax.Ident)
	op, known := augmented[s.Op]
	switch {
	case !ok:
		r.refuse(s.OpPos, "a verifier may use "+s.Op.String()+" on a name only")
		return
	case s.Op == syntax.PLUS_EQ:
		s.RHS = guard(guardExtend, s.OpPos, &syntax.Ident{NamePos: name.NamePos, Name: name.Name}, s.RHS)
	case known:
		s.RHS = operator(op, s.OpPos, &syntax.Ident{NamePos: name.NamePos, Name: name.Name}, s.RHS)
	default:
		r.refuse(s.OpPos, "a verifier may not use "+s.Op.String())
		return
	}
	s.Op = syntax.EQ
}

// target goes through what is assigned to.
func (r *rewriter) target(x syntax.Expr) {
	switch x := x.(type) {
	case *syntax.ParenExpr:
		r.target(x.X)
	case *syntax.TupleExpr:
		for _, e := range x.List {
			r.target(e)
		}
	case *syntax.ListExpr:
		for _, e := range x.List {
			r.target(e)
		}
	case *syntax.IndexExpr:
		x.X, x.Y = r.expr(x.X), r.expr(x.Y)
	case *syntax.DotExpr:
		x.X = r.expr(x.X)
	}
}

// params goes through the defaults of parameters.
func (r *rewriter) params(list []syntax.Expr) {
	for _, p := range list {
		if b, ok := p.(*syntax.BinaryExpr); ok {
			b.Y = r.expr(b.Y)
		}
	}
}

func (r *rewriter) exprs(list []syntax.Expr) {
	for i := range list {
		list[i] = r.expr(list[i])
	}
}

func (r *rewriter) expr(x syntax.Expr) syntax.Expr {
	switch x := x.(type) {
	case *syntax.BinaryExpr:
		x.X, x.Y = r.expr(x.X), r.expr(x.Y)
		if x.Op != syntax.AND && x.Op != syntax.OR {
			return operator(x.Op, x.OpPos, x.X, x.Y)
		}
	case *syntax.CallExpr:
		return r.call(x)
	case *syntax.Comprehension:
		for _, c := range x.Clauses {
			switch c := c.(type) {
			case *syntax.ForClause:
				r.target(c.Vars)
				c.X = r.expr(c.X)
			case *syntax.IfClause:
				c.Cond = r.expr(c.Cond)
			}
		}
		x.Body = r.expr(x.Body)
	case *syntax.CondExpr:
		x.Cond, x.True, x.False = r.expr(x.Cond), r.expr(x.True), r.expr(x.False)
	case *syntax.DictEntry:
		x.Key, x.Value = r.expr(x.Key), r.expr(x.Value)
	case *syntax.DictExpr:
		r.exprs(x.List)
	case *syntax.DotExpr:
		x.X = r.expr(x.X)
	case *syntax.IndexExpr:
		x.X, x.Y = r.expr(x.X), r.expr(x.Y)
	case *syntax.LambdaExpr:
		r.params(x.Params)
		x.Body = r.expr(x.Body)
	case *syntax.ListExpr:
		r.exprs(x.List)
	case *syntax.ParenExpr:
		x.X = r.expr(x.X)
	case *syntax.SliceExpr:
		x.X = guard(guardCopy, x.Lbrack, r.expr(x.X))
		for _, e := range []*syntax.Expr{&x.Lo, &x.Hi, &x.Step} {
			if *e != nil {
				*e = r.expr(*e)
			}
		}
	case *syntax.TupleExpr:
		r.exprs(x.List)
		start, _ := x.Span()
		return guard(guardMeasure, start, &syntax.ParenExpr{Lparen: start, X: x, Rparen: start})
	case *syntax.UnaryExpr:
		if x.X != nil {
			x.X = r.expr(x.X)
		}
	}
	return x
}

func (r *rewriter) call(x *syntax.CallExpr) syntax.Expr {
	args := []syntax.Expr{r.expr(x.Fn)}
	for _, a := range x.Args {
		switch a := a.(type) {
		case *syntax.BinaryExpr:
			if a.Op == syntax.EQ { // a named argument
				a.Y = r.expr(a.Y)
				args = append(args, a)
				continue
			}
		case *syntax.UnaryExpr:
			if a.Op == syntax.STAR || a.Op == syntax.STARSTAR {
				r.refuse(a.OpPos, "a verifier may not use "+a.Op.String()+" on arguments")
			}
		}
		args = append(args, r.expr(a))
	}
	return guard(guardCall, x.Lparen, args...)
}
