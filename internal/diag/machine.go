package diag

func machineProblems() []Problem {
	return []Problem{}
}
