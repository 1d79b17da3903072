package bootstrap

import (
	"context"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// RotateOptions say what is made new.
type RotateOptions struct {
	// ServerToken and AgentToken choose among the tokens.
	ServerToken, AgentToken bool
	// Confirm as in ApplyOptions.
	Confirm func(context.Context, PlanResult) error
}

// RotateCertificates makes the certificates of every machine new, servers one
// after the other, then agents. Pods run on. The CAs stay.
func (e *Engine) RotateCertificates(ctx context.Context, o RotateOptions) (ApplyResult, error) {
	return e.rotate(ctx, o, func(s sight, do doer) []plan.Action {
		return e.want.certificateActions(s, do)
	})
}

// RotateTokens makes the cluster's tokens new and gives them to every machine.
// Run again it makes them new again, which also mends a run that was cut off.
func (e *Engine) RotateTokens(ctx context.Context, o RotateOptions) (ApplyResult, error) {
	return e.rotate(ctx, o, func(s sight, do doer) []plan.Action {
		return e.want.tokenActions(s, do, o, e.settings.Secret)
	})
}

func (e *Engine) rotate(ctx context.Context, o RotateOptions, actions func(sight, doer) []plan.Action) (ApplyResult, error) {
	if e.want.existing() == nil {
		s, err := e.observe(ctx)
		if err != nil {
			return ApplyResult{}, err
		}
		if !s.cluster.there() {
			return ApplyResult{}, e.noCluster(ctx, s)
		}
		result, err := e.onNodes(ctx, s, book{actions: actions(s, e.doer()), out: map[string]bool{}}, o.Confirm, nil, nil)
		e.api.forget()
		return result, err
	}
	return ApplyResult{}, e.want.withEtcd()
}

// restarts makes one action per machine that runs k3s: servers in turn, then
// agents after all of them.
func (w wanted) restarts(s sight, base plan.Action, after []string, apply func(m inventory.Machine, want k3s.Want) func(context.Context, plan.Say) error) []plan.Action {
	net := w.network(s)
	var actions []plan.Action
	add := func(m inventory.Machine, needs []string) {
		a := base
		a.ID, a.Machine, a.Needs, a.Timeout = m.Name+"/"+base.ID, m.Name, needs, 13*time.Minute
		a.Apply = apply(m, w.k3s(m, s, net))
		actions = append(actions, a)
	}
	for _, m := range w.inTurn(s) {
		if f, seen := s.facts[m.Name]; seen && serverInstalled(f) {
			add(m, after)
			after = []string{m.Name + "/" + base.ID}
		}
	}
	for _, m := range w.machines {
		if _, runs := s.facts[m.Name].K3s.Value.Units["k3s-agent"]; runs && m.Role == inventory.Agent {
			add(m, after)
		}
	}
	return actions
}

// certificateActions is pure.
func (w wanted) certificateActions(s sight, do doer) []plan.Action {
	base := plan.Action{
		ID: "certificates", Title: "make new certificates", Reason: "it was asked for", Consent: plan.ConsentRestart,
		Changes: []string{"the certificates of before are kept beside them, as tls-<time>", "k3s starts again; pods run on"},
	}
	return w.restarts(s, base, nil, func(m inventory.Machine, want k3s.Want) func(context.Context, plan.Say) error {
		return func(ctx context.Context, say plan.Say) error {
			return k3s.RotateCertificates(ctx, want, k3s.Access{On: do.on(m.Name)}, say)
		}
	})
}

// tokenActions is pure; the new secrets are made when it is applied.
func (w wanted) tokenActions(s sight, do doer, o RotateOptions, tell func(string)) []plan.Action {
	lead := w.lead(s)
	var fresh k3s.Tokens // written by the first action, which all others need
	begin := plan.Action{
		ID: lead.Name + "/new-tokens", Machine: lead.Name, Title: "make new tokens", Reason: "it was asked for", Timeout: 2 * time.Minute, Consent: plan.ConsentRestart,
		Changes: []string{"snapshots from before open with the server token of before alone: keep it where you keep them"},
		Apply: func(ctx context.Context, _ plan.Say) error {
			c, err := k3s.ReadCredentials(ctx, do.on(lead.Name), lead.DataDir)
			if err != nil {
				return err
			}
			if o.AgentToken {
				fresh.Agent = k3s.With(c.AgentToken, k3s.NewSecret())
				tell(fresh.Agent)
			}
			if !o.ServerToken {
				return nil
			}
			secret := k3s.NewSecret()
			tell(secret)
			fresh.Server = k3s.With(c.ServerToken, secret)
			supervisor, err := k3s.NewSupervisor(c, do.api.engine.fleet.on(lead.Name).Dial)
			if err != nil {
				return err
			}
			return supervisor.RotateToken(ctx, secret)
		},
	}
	base := plan.Action{ID: "tokens", Title: "take the new tokens", Reason: "they are made new", Consent: plan.ConsentRestart, Changes: []string{"k3s starts again; pods run on"}}
	rest := w.restarts(s, base, []string{begin.ID}, func(m inventory.Machine, want k3s.Want) func(context.Context, plan.Say) error {
		return func(ctx context.Context, say plan.Say) error {
			return k3s.WriteTokens(ctx, want, k3s.Access{On: do.on(m.Name)}, fresh, say)
		}
	})
	actions := []plan.Action{begin}
	for _, a := range rest {
		if o.AgentToken || w.isServer(a.Machine) {
			actions = append(actions, a)
		}
	}
	return actions
}

func (w wanted) isServer(name string) bool {
	for _, m := range w.serverList() {
		if m.Name == name {
			return true
		}
	}
	return false
}
