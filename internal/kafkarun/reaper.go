package kafkarun

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// reaper takes group members out that have died at a moment at which the broker does not notice it. kfake starts a member's session
// timer with its reply to a join: a client that is killed while it waits for that reply stays in the group, with a share of the
// partitions that nobody reads. Kafka itself looks after such members.
//
// The reaper sees the requests of all members go by, and asks the broker to let those go that have been silent for longer than they
// themselves have promised: the session timeout, and the rebalance timeout on top for those that wait for an answer to a join or sync.
type reaper struct {
	log    *slog.Logger
	every  time.Duration
	client *kgo.Client
	stop   context.CancelFunc
	ended  chan struct{}

	mu    sync.Mutex
	heard map[groupMember]promise
}

type groupMember struct{ group, id string }

// promise is when a member was last heard and how long it may be silent after that.
type promise struct {
	at                 time.Time
	silence            time.Duration
	session, rebalance time.Duration
}

// startReaper begins to look at a cluster's groups. every is how often silence is looked for.
func startReaper(cluster *kfake.Cluster, addr string, every time.Duration, log *slog.Logger) (*reaper, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ClientID("kafkarun"))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &reaper{log: log, every: every, client: client, stop: stop, ended: make(chan struct{}), heard: map[groupMember]promise{}}
	for _, key := range []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup} {
		cluster.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
			r.hear(req, time.Now())
			return nil, nil, false // the broker answers
		})
	}
	go r.run(ctx)
	return r, nil
}

func (r *reaper) close() {
	r.stop()
	<-r.ended
	r.client.Close()
}

// hear notes a request of a member.
func (r *reaper) hear(req kmsg.Request, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch req := req.(type) {
	case *kmsg.JoinGroupRequest:
		if req.MemberID == "" {
			return // it has no name yet, and a timer
		}
		p := promise{session: milliseconds(req.SessionTimeoutMillis), rebalance: milliseconds(req.RebalanceTimeoutMillis)}
		r.note(groupMember{req.Group, req.MemberID}, p, now, p.session+p.rebalance)
	case *kmsg.SyncGroupRequest:
		m := groupMember{req.Group, req.MemberID}
		if p, ok := r.heard[m]; ok {
			r.note(m, p, now, p.session+p.rebalance)
		}
	case *kmsg.HeartbeatRequest:
		m := groupMember{req.Group, req.MemberID}
		if p, ok := r.heard[m]; ok {
			r.note(m, p, now, p.session)
		}
	case *kmsg.LeaveGroupRequest:
		delete(r.heard, groupMember{req.Group, req.MemberID})
		for _, m := range req.Members {
			delete(r.heard, groupMember{req.Group, m.MemberID})
		}
	}
}

func (r *reaper) note(m groupMember, p promise, now time.Time, silence time.Duration) {
	p.at, p.silence = now, silence
	r.heard[m] = p
}

func milliseconds(n int32) time.Duration { return time.Duration(n) * time.Millisecond }

func (r *reaper) run(ctx context.Context) {
	defer close(r.ended)
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, m := range r.silent(time.Now()) {
			r.remove(ctx, m)
		}
	}
}

// silent takes out the members that have been silent for longer than promised, and a moment more: the broker's own timers come first.
func (r *reaper) silent(now time.Time) []groupMember {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []groupMember
	for m, p := range r.heard {
		if now.Sub(p.at) > p.silence+r.every {
			delete(r.heard, m)
			out = append(out, m)
		}
	}
	return out
}

// remove makes the member leave; most have gone already, and the broker says so.
func (r *reaper) remove(ctx context.Context, m groupMember) {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = m.group, m.id
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID = m.id
	req.Members = append(req.Members, member)
	resp, err := req.RequestWith(ctx, r.client)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.log.Warn("kafkarun: a silent member could not be taken out of its group", "group", m.group, "member", m.id, "error", err)
	case resp.ErrorCode == 0 && (len(resp.Members) == 0 || resp.Members[0].ErrorCode == 0):
		r.log.Info("kafkarun: a silent member was taken out of its group", "group", m.group, "member", m.id)
	}
}
