package sim

import (
	"net/http"
	"time"
)

type fraudChecks struct {
	AddressVerification string `json:"addressVerification"`
	CVVCheck            string `json:"cvvCheck"`
	VelocityCheck       string `json:"velocityCheck"`
}

type fraudReply struct {
	Status      string      `json:"status"`
	RiskScore   int         `json:"riskScore"`
	RiskLevel   string      `json:"riskLevel"`
	Checks      fraudChecks `json:"checks"`
	AggregateID string      `json:"aggregateId"`
	Timestamp   time.Time   `json:"timestamp"`
}

const (
	lowRisk  = 25
	highRisk = 75
)

// checkFraud only reads: it has no effect and nothing to undo.
func checkFraud(o *operation) outcome {
	reply := fraudReply{
		Status: "approved", RiskScore: riskScore(o.call.Aggregate), RiskLevel: "low",
		Checks:      fraudChecks{AddressVerification: "pass", CVVCheck: "pass", VelocityCheck: "pass"},
		AggregateID: o.call.Aggregate, Timestamp: o.now,
	}
	if o.ep.outcome == alwaysSucceeds {
		reply.RiskScore = lowRisk
	}
	if reply.RiskScore == highRisk {
		reply.Status, reply.RiskLevel, reply.Checks.VelocityCheck = "review", "high", "review"
	}
	return outcome{status: http.StatusOK, body: reply}
}

// riskScore is low for even aggregate ids and high for odd or other ones.
func riskScore(aggregate string) int {
	if isDigits(aggregate) && (aggregate[len(aggregate)-1]-'0')%2 == 0 {
		return lowRisk
	}
	return highRisk
}
