package diag

func driverProblems() []Problem {
	return []Problem{}
}
