package server

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/cluster"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/sirupsen/logrus"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// beat is the time between two looks at the members. k3s promotes every 15 s;
// here it is done sooner, so that tests need not wait.
const beat = 2 * time.Second

// patience is how often an API server that is advertised may be silent.
const patience = 3

// tellMember writes on this server's Node which member of etcd it is.
func (s *Server) tellMember(ctx context.Context) error {
	name, err := os.ReadFile(s.Data.Server("db/etcd/name"))
	if err != nil {
		return err
	}
	return cluster.Annotate(ctx, s.client, s.ID.Name, map[string]string{
		cluster.AnnotationEtcd: strings.TrimSpace(string(name)), "etcd.k3s.cattle.io/node-address": s.ID.IP().String(),
	}, nil)
}

// keeper is what one server remembers about the others.
type keeper struct {
	*Server
	etcdClient *clientv3.Client
	// members by their node, as Nodes said when they were last there.
	members map[string]string
	silent  map[string]int
	voter   bool
}

// keepMembers promotes learners, removes the members of deleted Nodes and
// withdraws API servers that are gone, until ctx ends.
// Source: k3s pkg/etcd/etcd.go, member_controller.go.
func (s *Server) keepMembers(ctx context.Context) {
	c, err := EtcdClient(s.Data)
	if err != nil {
		logrus.Errorf("Watching etcd members: %v", err)
		return
	}
	defer c.Close()
	k := &keeper{Server: s, etcdClient: c, members: map[string]string{}, silent: map[string]int{}}
	for wait(ctx, beat) {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		for _, step := range []func(context.Context) error{k.promote, k.forget, k.advertise, k.vote} {
			if err := step(once); err != nil && ctx.Err() == nil {
				logrus.Warnf("Watching etcd members: %v", err)
			}
		}
		cancel()
	}
}

// promote is for the leader alone: the others are refused.
func (k *keeper) promote(ctx context.Context) error {
	status, err := k.etcdClient.Status(ctx, "https://127.0.0.1:2379")
	if err != nil || status.Leader != status.Header.MemberId {
		return err
	}
	list, err := k.etcdClient.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, m := range list.Members {
		if !m.IsLearner || m.Name == "" {
			continue
		}
		if _, err := k.etcdClient.MemberPromote(ctx, m.ID); err == nil {
			logrus.Infof("Promoted learner %s", m.Name)
		}
	}
	return nil
}

// forget removes the members whose Nodes were deleted. A server leaves the
// removal of its own to the others.
func (k *keeper) forget(ctx context.Context) error {
	now, err := cluster.EtcdNodes(ctx, k.client)
	if err != nil {
		return err
	}
	for node, member := range k.members {
		if _, there := now[node]; there || node == k.ID.Name {
			continue
		}
		if err := k.remove(ctx, node, member); err != nil {
			return err
		}
	}
	k.members = now
	return nil
}

func (k *keeper) remove(ctx context.Context, node, member string) error {
	list, err := k.etcdClient.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, m := range list.Members {
		if m.Name == member {
			logrus.Infof("Removing etcd member from cluster due to node delete")
			logrus.Infof("Removing name=%s id=%x address=%s from etcd", m.Name, m.ID, strings.Join(m.PeerURLs, ","))
			if _, err := k.etcdClient.MemberRemove(ctx, m.ID); err != nil {
				return err
			}
		}
	}
	advertised, err := cluster.Advertised(ctx, k.client)
	if err != nil {
		return err
	}
	if ip := advertised[node]; ip != "" {
		return cluster.Withdraw(ctx, k.client, node, ip, layout.SupervisorPort)
	}
	return nil
}

// advertise keeps this server in the endpoints of the API and takes silent ones out.
func (k *keeper) advertise(ctx context.Context) error {
	all, err := cluster.Advertised(ctx, k.client)
	if err != nil {
		return err
	}
	if all[k.ID.Name] != k.advertised() {
		return cluster.Advertise(ctx, k.client, k.ID.Name, k.advertised(), layout.SupervisorPort)
	}
	for node, ip := range all {
		if node == k.ID.Name {
			continue
		}
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(ip, strconv.Itoa(layout.SupervisorPort)), time.Second)
		if err == nil {
			conn.Close()
			k.silent[node] = 0
			continue
		}
		if k.silent[node]++; k.silent[node] >= patience {
			if err := cluster.Withdraw(ctx, k.client, node, ip, layout.SupervisorPort); err != nil {
				return err
			}
		}
	}
	return nil
}

// vote says on the Node, once, that its member votes.
func (k *keeper) vote(ctx context.Context) error {
	if k.voter {
		return nil
	}
	if err := cluster.Voter(ctx, k.client, k.ID.Name); err != nil {
		return err
	}
	k.voter = true
	return nil
}
