package diag

func clusterProblems() []Problem {
	return []Problem{}
}
