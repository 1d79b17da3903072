// Package cluster does through the API what the controllers inside k3s do:
// node passwords, node initialisation, the endpoints of the API, packaged
// components.
package cluster

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Connect makes a client from a kubeconfig file.
func Connect(kubeconfig string) (kubernetes.Interface, error) {
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	rest.QPS, rest.Burst = 50, 100
	return kubernetes.NewForConfig(rest)
}

// WaitReady polls /readyz until it answers ok; waiting is called with each
// failure.
func WaitReady(ctx context.Context, c kubernetes.Interface, waiting func(error)) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		if err == nil {
			return nil
		}
		waiting(err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
