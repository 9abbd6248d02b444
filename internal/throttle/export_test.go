package throttle

// What tests of the order over runs need.
var (
	WordsOf = wordsOf
	Alive   = alive
)
