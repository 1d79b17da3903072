package diag

func networkProblems() []Problem {
	return []Problem{}
}
