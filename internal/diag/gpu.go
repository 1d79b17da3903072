package diag

func gpuProblems() []Problem {
	return []Problem{}
}
