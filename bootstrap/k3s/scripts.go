package k3s

import (
	_ "embed"
	"strings"
)

// The scripts are read-only; embedding needs variables.
var (
	//go:embed script/lay.sh
	layScript string
	//go:embed script/start.sh
	startScript string
	//go:embed script/download.sh
	downloadScript string
	//go:embed script/credentials.sh
	credentialsScript string
	//go:embed script/killall.sh
	killallText string
	//go:embed script/uninstall.sh
	uninstallText string
	//go:embed script/reset.sh
	resetScript string
)

// killallScript has the effect of the official k3s-killall.sh, so that one can leave gpuctl.
func killallScript(w Want) string { return strings.ReplaceAll(killallText, "@DATA_DIR@", w.Data()) }

// uninstallScript has the effect of the official k3s-uninstall.sh or k3s-agent-uninstall.sh.
func uninstallScript(w Want) string {
	return strings.NewReplacer("@DATA_DIR@", w.Data(), "@UNIT@", w.Unit()).Replace(uninstallText)
}

func uninstallPath(w Want) string { return BinDir + "/" + w.Unit() + "-uninstall.sh" }

// heredoc feeds content to a command on standard input, byte by byte.
func heredoc(command, content string) string {
	mark := "GPUCTL_EOF"
	for strings.Contains(content, mark) {
		mark += "_"
	}
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	return command + " <<'" + mark + "'\n" + content + mark + "\n"
}
