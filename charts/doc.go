// Package charts holds what is installed into a cluster: the tested sets of
// versions (data), the values the facts demand (pure functions), and a Releaser
// that brings Helm releases to the wanted state and mends stuck ones.
//
// It is the only package that imports Helm. Helm's clients are built at the
// first use of a Releaser, not when the program starts.
package charts
