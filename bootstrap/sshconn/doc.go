// Package sshconn implements package remote over SSH: one connection for each
// machine, ssh_config as OpenSSH reads it, jump hosts, agents, host keys, sudo.
//
// Everything a command needs goes over its standard input; the command line
// itself is one constant (see wire.go). A Dialer shares connections to jump
// hosts; Dial makes a single connection.
package sshconn
