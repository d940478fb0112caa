package main

import "github.com/ebbline/ebb/cmd/ebb/internal/completion"

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Help has examples.
func (completionCmd) Help() string {
	return `Examples:

  source <(ebb completion bash)
  ebb completion zsh > "${fpath[1]}/_ebb"
  ebb completion fish > ~/.config/fish/completions/ebb.fish`
}

func (c *completionCmd) Run(e *env) error { return completion.Write(e.stdout, c.Shell, e.model) }
