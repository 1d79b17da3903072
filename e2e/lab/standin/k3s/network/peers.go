package network

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/vishvananda/netlink"
)

const (
	vxlanName = "flannel.1"
	vxlanPort = 8472
	vxlanID   = 1
)

// vxlan reaches other nodes through device flannel.1: the peer's range is
// routed to its network address, whose neighbour entry is the peer's device,
// whose forwarding entry is the peer's node address. Nothing is learnt.
type vxlan struct {
	link netlink.Link
	mac  net.HardwareAddr
}

// newVXLAN makes flannel.1, or takes the one that is there.
func newVXLAN(under *net.Interface, ip net.IP, podCIDR string) (*vxlan, error) {
	want := &netlink.Vxlan{
		LinkAttrs:    netlink.LinkAttrs{Name: vxlanName, MTU: under.MTU - mtuLoss},
		VxlanId:      vxlanID,
		VtepDevIndex: under.Index,
		SrcAddr:      ip,
		Port:         vxlanPort,
	}
	err := netlink.LinkAdd(want)
	if err != nil && !errors.Is(err, syscall.EEXIST) {
		return nil, fmt.Errorf("adding %s: %w", vxlanName, err)
	}
	link, err := netlink.LinkByName(vxlanName)
	if err != nil {
		return nil, err
	}
	have, ok := link.(*netlink.Vxlan)
	if !ok || have.VtepDevIndex != under.Index || !have.SrcAddr.Equal(ip) {
		if err := netlink.LinkDel(link); err != nil {
			return nil, err
		}
		return newVXLAN(under, ip, podCIDR)
	}
	network, _, err := net.ParseCIDR(podCIDR)
	if err != nil {
		return nil, err
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: network, Mask: net.CIDRMask(32, 32)}}
	if err := netlink.AddrReplace(link, addr); err != nil {
		return nil, err
	}
	return &vxlan{link, link.Attrs().HardwareAddr}, netlink.LinkSetUp(link)
}

func (v *vxlan) backendData() string { return fmt.Sprintf(`{"VNI":%d,"VtepMAC":%q}`, vxlanID, v.mac) }

func (v *vxlan) entries(p peer) (arp, fdb *netlink.Neigh, route *netlink.Route, err error) {
	mac, err := net.ParseMAC(p.mac)
	if err != nil {
		return nil, nil, nil, err
	}
	gateway, pods, err := net.ParseCIDR(p.pods)
	if err != nil {
		return nil, nil, nil, err
	}
	index := v.link.Attrs().Index
	arp = &netlink.Neigh{
		LinkIndex: index, State: netlink.NUD_PERMANENT, Type: syscall.RTN_UNICAST, IP: gateway, HardwareAddr: mac,
	}
	fdb = &netlink.Neigh{
		LinkIndex: index, State: netlink.NUD_PERMANENT, Family: syscall.AF_BRIDGE, Flags: netlink.NTF_SELF,
		IP: net.ParseIP(p.ip), HardwareAddr: mac,
	}
	route = &netlink.Route{
		LinkIndex: index, Scope: netlink.SCOPE_UNIVERSE, Dst: pods, Gw: gateway, Flags: int(netlink.FLAG_ONLINK),
	}
	return arp, fdb, route, nil
}

func (v *vxlan) add(p peer) error {
	arp, fdb, route, err := v.entries(p)
	if err != nil {
		return err
	}
	return errors.Join(netlink.NeighSet(arp), netlink.NeighSet(fdb), netlink.RouteReplace(route))
}

func (v *vxlan) remove(p peer) error {
	arp, fdb, route, err := v.entries(p)
	if err != nil {
		return err
	}
	return errors.Join(netlink.RouteDel(route), netlink.NeighDel(fdb), netlink.NeighDel(arp))
}

// hostGateway routes a peer's range to the peer itself: all nodes are on one
// network.
type hostGateway struct{ index int }

func (h hostGateway) route(p peer) (*netlink.Route, error) {
	_, pods, err := net.ParseCIDR(p.pods)
	return &netlink.Route{LinkIndex: h.index, Dst: pods, Gw: net.ParseIP(p.ip)}, err
}

func (h hostGateway) add(p peer) error {
	route, err := h.route(p)
	if err != nil {
		return err
	}
	return netlink.RouteReplace(route)
}

func (h hostGateway) remove(p peer) error {
	route, err := h.route(p)
	if err != nil {
		return err
	}
	return netlink.RouteDel(route)
}
