package expect

// edits returns how many characters must be inserted, deleted or replaced to make one text out of another (Levenshtein's distance).
func edits(from, to string) int {
	target := []rune(to)
	row := make([]int, len(target)+1) // row[i] is the distance from what is read of from to the first i characters of to
	for i := range row {
		row[i] = i
	}
	read := 0
	for _, have := range from {
		read++
		diagonal := row[0] // the distance without have, and without want
		row[0] = read
		for i, want := range target {
			replaced := diagonal
			if have != want {
				replaced++
			}
			diagonal = row[i+1]
			row[i+1] = min(replaced, diagonal+1, row[i]+1)
		}
	}
	return row[len(target)]
}
