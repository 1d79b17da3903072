package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// joinLimit bounds how long a server waits to become a member, and then a voter.
const joinLimit = 5 * time.Minute

var errDuplicate = errors.New("duplicate node name found, please use a unique name for this node")

// addMember makes this server a learner of the cluster's etcd and returns what
// etcd wants as its initial cluster. One learner joins at a time.
func (s *Server) addMember(ctx context.Context, name, peer string) (initial string, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	c, err := s.others(ctx)
	if err != nil {
		return "", err
	}
	defer c.Close()
	for said := false; ; {
		list, err := c.MemberList(ctx)
		if err != nil {
			return "", err
		}
		learning, mine, err := s.judge(list.Members, peer)
		if err != nil {
			return "", err
		}
		if !mine && !learning {
			_, err = c.MemberAddAsLearner(ctx, []string{peer})
			switch {
			case err == nil:
				logrus.Infof("Adding member %s=%s to etcd cluster %s", name, peer, names(list.Members))
				mine = true
			case !errors.Is(err, rpctypes.ErrTooManyLearners) && !errors.Is(err, rpctypes.ErrUnhealthy):
				return "", err
			}
		}
		if mine {
			return initialCluster(list.Members, name, peer), nil
		}
		if !said {
			logrus.Info("Waiting for other members to finish joining etcd cluster")
			said = true
		}
		if !wait(ctx, 2*time.Second) {
			return "", context.Cause(ctx)
		}
	}
}

// others connects to the etcd of the cluster to join.
func (s *Server) others(ctx context.Context) (*clientv3.Client, error) {
	var info struct {
		Members []struct {
			ClientURLs []string `json:"clientURLs"`
		} `json:"members"`
	}
	if err := s.leader.get(ctx, "server", s.leader.secret, "/db/info", &info); err != nil {
		return nil, err
	}
	var endpoints []string
	for _, m := range info.Members {
		endpoints = append(endpoints, m.ClientURLs...)
	}
	return etcdClient(s.Data, endpoints...)
}

// judge says whether somebody is learning and whether this server is in the list already.
func (s *Server) judge(members []*pb.Member, peer string) (learning, mine bool, err error) {
	for _, m := range members {
		switch {
		case slices.Contains(m.PeerURLs, peer) && m.Name == "":
			mine = true // an earlier try was cut off
		case nodeOf(m.Name) == s.ID.Name:
			return false, false, errDuplicate
		case m.IsLearner:
			learning = true
		}
	}
	return learning, mine, nil
}

// nodeOf is the node of a member: its name without the random end.
func nodeOf(member string) string {
	if i := strings.LastIndex(member, "-"); i > 0 {
		return member[:i]
	}
	return member
}

func initialCluster(members []*pb.Member, name, peer string) string {
	all := []string{name + "=" + peer}
	for _, m := range members {
		if m.Name != "" {
			all = append(all, m.Name+"="+m.PeerURLs[0])
		}
	}
	return strings.Join(all, ",")
}

func names(members []*pb.Member) string {
	var all []string
	for _, m := range members {
		all = append(all, m.Name+"="+strings.Join(m.PeerURLs, ","))
	}
	return "[" + strings.Join(all, " ") + "]"
}

// awaitPromotion waits until the others have made this member a voter: before
// that its etcd serves nothing that an API server needs.
func (s *Server) awaitPromotion(ctx context.Context, peer string) error {
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	c, err := s.others(ctx)
	if err != nil {
		return &shutdown{err}
	}
	defer c.Close()
	for said := false; ; {
		list, err := c.MemberList(ctx)
		if err == nil && slices.ContainsFunc(list.Members, func(m *pb.Member) bool {
			return slices.Contains(m.PeerURLs, peer) && !m.IsLearner && m.Name != ""
		}) {
			return nil
		}
		if !said {
			logrus.Info("this server has not yet been promoted from learner to voting member")
			said = true
		}
		if !wait(ctx, time.Second) {
			return &shutdown{fmt.Errorf("etcd cluster join failed: %w", context.Cause(ctx))}
		}
	}
}

// move gives etcd's one member its address of now.
func (s *Server) move(ctx context.Context, peer string) error {
	c, err := EtcdClient(s.Data)
	if err != nil {
		return err
	}
	defer c.Close()
	return retried(ctx, func(ctx context.Context) error {
		list, err := c.MemberList(ctx)
		if err != nil {
			return err
		}
		if len(list.Members) != 1 {
			return fmt.Errorf("etcd has %d members, want this one alone", len(list.Members))
		}
		if slices.Contains(list.Members[0].PeerURLs, peer) {
			return nil
		}
		_, err = c.MemberUpdate(ctx, list.Members[0].ID, []string{peer})
		return err
	})
}

// retried tries for a minute: etcd takes its time to answer.
func retried(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		once, done := context.WithTimeout(ctx, 5*time.Second)
		err := try(once)
		done()
		if err == nil {
			return nil
		}
		if !wait(ctx, 300*time.Millisecond) {
			return err
		}
	}
}

// wait says whether the time passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
