package saga

// Mutation names a rule that tests leave out, to prove that the model notices.
type Mutation = mutation

// The rules that can be left out.
const (
	SkipNothing   = skipNothing
	SkipFence     = skipFence
	SkipMaybe     = skipMaybe
	SkipAdvance   = skipAdvance
	SkipRecheck   = skipRecheck
	SkipTombstone = skipTombstone
	SkipScope     = skipScope
	SkipExpected  = skipExpected
	SkipReverse   = skipReverse
	SkipAwait     = skipAwait
	SkipSettle    = skipSettle
	SkipConfirm   = skipConfirm
)

// Skip leaves a rule out of the aggregate's transitions.
func (a *Aggregate) Skip(m Mutation) { a.skip = m }

// Emissions shows what is collected, without taking it.
func (a *Aggregate) Emissions() []Emission { return a.emissions }

// ForgetEmissions drops what is collected and keeps its memory.
func (a *Aggregate) ForgetEmissions() { a.emissions = a.emissions[:0] }
