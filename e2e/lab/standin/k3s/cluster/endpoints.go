package cluster

import (
	"context"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

const apiService = "kubernetes"

// Advertise puts the address of server node into the endpoints of Service
// kubernetes, in place of the one it had. The API server of k3s does that
// itself, with a port that upstream cannot advertise; so here its own
// reconciler is off.
func Advertise(ctx context.Context, c kubernetes.Interface, node, ip string, port int32) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return advertise(ctx, c, node, ip, port, true) })
}

// Withdraw takes the address of server node out again.
func Withdraw(ctx context.Context, c kubernetes.Interface, node, ip string, port int32) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return advertise(ctx, c, node, ip, port, false) })
}

func advertise(ctx context.Context, c kubernetes.Interface, node, ip string, port int32, there bool) error {
	client := c.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	have, err := client.Get(ctx, apiService, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		have, err = client.Create(ctx, apiSlice(port), metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	have.Endpoints = slices.DeleteFunc(have.Endpoints, func(e discoveryv1.Endpoint) bool {
		return slices.Contains(e.Addresses, ip) || e.NodeName != nil && *e.NodeName == node
	})
	if there {
		have.Endpoints = append(have.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{ip}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &there},
		})
	}
	if _, err := client.Update(ctx, have, metav1.UpdateOptions{}); err != nil {
		return err
	}
	var all []string
	for _, e := range have.Endpoints {
		all = append(all, e.Addresses...)
	}
	return advertiseOld(ctx, c, all, port)
}

// Advertised are the addresses by the name of their server's node.
func Advertised(ctx context.Context, c kubernetes.Interface) (map[string]string, error) {
	s, err := c.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(ctx, apiService, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, e := range s.Endpoints {
		if e.NodeName != nil && len(e.Addresses) > 0 {
			all[*e.NodeName] = e.Addresses[0]
		}
	}
	return all, nil
}

// APIServers lists the advertised addresses as host:port.
func APIServers(ctx context.Context, c kubernetes.Interface) ([]string, error) {
	s, err := c.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(ctx, apiService, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range s.Endpoints {
		for _, a := range e.Addresses {
			all = append(all, net.JoinHostPort(a, strconv.Itoa(int(*s.Ports[0].Port))))
		}
	}
	return all, nil
}

func apiSlice(port int32) *discoveryv1.EndpointSlice {
	name, proto := "https", corev1.ProtocolTCP
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:   apiService,
			Labels: map[string]string{discoveryv1.LabelServiceName: apiService},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &proto}},
	}
}

// advertiseOld writes the same into the older Endpoints object.
func advertiseOld(ctx context.Context, c kubernetes.Interface, ips []string, port int32) error {
	object := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{
			Name:   apiService,
			Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"},
		},
		Subsets: []corev1.EndpointSubset{{Ports: []corev1.EndpointPort{{Name: "https", Port: port, Protocol: corev1.ProtocolTCP}}}},
	}
	for _, ip := range ips {
		object.Subsets[0].Addresses = append(object.Subsets[0].Addresses, corev1.EndpointAddress{IP: ip})
	}
	client := c.CoreV1().Endpoints(metav1.NamespaceDefault)
	_, err := client.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, object, metav1.CreateOptions{})
	}
	return err
}
