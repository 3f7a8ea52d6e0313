package command

import "github.com/spf13/cobra"

func (a *app) plan() *cobra.Command { return &cobra.Command{Use: "plan"} }
