package kafkarun

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestReaperKnowsHowLongAMemberMayBeSilent(t *testing.T) {
	t.Parallel()
	join := &kmsg.JoinGroupRequest{Group: "g", MemberID: "m", SessionTimeoutMillis: 10_000, RebalanceTimeoutMillis: 30_000}
	sync := &kmsg.SyncGroupRequest{Group: "g", MemberID: "m"}
	beat := &kmsg.HeartbeatRequest{Group: "g", MemberID: "m"}
	leave := &kmsg.LeaveGroupRequest{Group: "g", Members: []kmsg.LeaveGroupRequestMember{{MemberID: "m"}}}
	oldLeave := &kmsg.LeaveGroupRequest{Group: "g", MemberID: "m"}
	tests := []struct {
		name     string
		requests []kmsg.Request
		silence  time.Duration // 0: it is not looked after
	}{
		{"waits for the answer to a join", []kmsg.Request{join}, 40 * time.Second},
		{"waits for the answer to a sync", []kmsg.Request{join, sync}, 40 * time.Second},
		{"is in the group", []kmsg.Request{join, sync, beat}, 10 * time.Second},
		{"joins again", []kmsg.Request{join, sync, beat, join}, 40 * time.Second},
		{"has left", []kmsg.Request{join, sync, beat, leave}, 0},
		{"has left by an old request", []kmsg.Request{join, oldLeave}, 0},
		{"has no name yet", []kmsg.Request{&kmsg.JoinGroupRequest{Group: "g", SessionTimeoutMillis: 10_000}}, 0},
		{"was never seen to join", []kmsg.Request{beat, sync}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &reaper{every: time.Second, heard: map[groupMember]promise{}}
			now := time.Now()
			for _, req := range tt.requests {
				r.hear(req, now)
			}
			if tt.silence == 0 {
				require.Empty(t, r.silent(now.Add(time.Hour)))
				return
			}
			require.Empty(t, r.silent(now.Add(tt.silence+time.Second)))
			require.Equal(t, []groupMember{{"g", "m"}}, r.silent(now.Add(tt.silence+time.Second+1)))
			require.Empty(t, r.silent(now.Add(time.Hour)), "it is taken out once")
		})
	}
}
