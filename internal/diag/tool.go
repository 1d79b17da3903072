package diag

func toolProblems() []Problem {
	return []Problem{}
}
