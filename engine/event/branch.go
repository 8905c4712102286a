package event

func (b *StateSaved) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("milestone", &b.Milestone)
	c.id("state", &b.State)
	c.uint("bytes", &b.Bytes)
	c.uint("took_ms", &b.TookMS)
}

func (b *HeatBranched) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.text("heat", &b.Heat)
	c.id("log_head", &b.LogHead)
	c.id("milestone", &b.Milestone)
	c.uint("event", &b.Event)
	c.uint("at_ms", &b.AtMS)
}

func (b *MilestoneInherited) fields(c *codec) {
	c.id("territory", &b.Territory)
	c.id("milestone", &b.Milestone)
	c.uint("attempt", &b.Attempt)
	c.json("evidence", &b.Evidence)
}
