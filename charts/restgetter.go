package charts

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// restGetter gives Helm the caller's connection (its dialler with it), where Helm
// would look for a kubeconfig. Discovery is kept for one getter's life.
type restGetter struct {
	config    *rest.Config
	namespace string
	discovery discovery.CachedDiscoveryInterface
}

func newRESTGetter(config *rest.Config, namespace string) (*restGetter, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		// A chart's objects come in a burst; client-go's default of 5 a second would draw it out.
		config.QPS, config.Burst = 50, 100
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &restGetter{config: config, namespace: namespace, discovery: memory.NewMemCacheClient(client)}, nil
}

func (g *restGetter) ToRESTConfig() (*rest.Config, error) { return g.config, nil }

func (g *restGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.discovery, nil
}

func (g *restGetter) ToRESTMapper() (meta.RESTMapper, error) {
	return restmapper.NewDeferredDiscoveryRESTMapper(g.discovery), nil
}

func (g *restGetter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}}
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), overrides)
}
