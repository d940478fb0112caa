package saga

// mutation leaves one rule out. It is never set outside this package's tests, which prove with it that the model catches the
// loss of each rule.
type mutation uint8

const (
	skipNothing   mutation = iota
	skipFence              // results are accepted under any epoch
	skipMaybe              // an attempt without an answer counts as not happened
	skipAdvance            // nothing moves on by itself
	skipRecheck            // a claim does not repeat the order condition
	skipTombstone          // a cancel does not reach events that are read later
	skipScope              // a refused create unwinds its own saga only
	skipExpected           // a saga completes without the destinations that have not read it
	skipReverse            // an undo does not wait for what was done later
	skipAwait              // an undo does not wait for attempts that are out
	skipSettle             // a lookup that finds nothing counts although an attempt may still land
	skipConfirm            // a refusal counts although an earlier attempt may still land, where refusals are not remembered
)
