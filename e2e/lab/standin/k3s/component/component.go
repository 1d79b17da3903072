// Package component runs one upstream program of the control plane or the
// node, chosen by name, inside the stand-in's single binary.
package component

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // JSON log format of every component
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics, as upstream's main packages have
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// Run runs the component named name with os.Args as its command line and
// returns its exit code. ok is false when there is no such component.
func Run(name string) (code int, ok bool) {
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return 0, true
	}
	command := command(name)
	if command == nil {
		return 0, false
	}
	return cli.Run(command), true
}

func command(name string) *cobra.Command {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return controllers.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	case "kube-proxy":
		return proxy.NewProxyCommand()
	case "kubelet":
		return kubelet.NewKubeletCommand(context.Background())
	case "kubectl":
		return kubectl.NewDefaultKubectlCommand()
	}
	return nil
}
