package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	drover "github.com/drover-dev/drover"
)

func (a *app) completion() *cobra.Command {
	shells := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) },
		"zsh":        (*cobra.Command).GenZshCompletion,
		"fish":       func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) },
		"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
		"kubectl": func(_ *cobra.Command, w io.Writer) error {
			_, err := io.WriteString(w, drover.Completion)
			return err
		},
	}
	names := []string{"kubectl", "bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion (kubectl | bash | zsh | fish | powershell)",
		Short: "Write a script that completes commands and names",
		Long: "Write a script that completes commands and the names of objects. With kubectl, it is the file kubectl_complete-drover, by which kubectl's own completion completes kubectl drover; " +
			"the others complete kubectl-drover in a shell.",
		Example: "  # For kubectl drover, once kubectl's own completion is set up\n  kubectl drover completion kubectl > /usr/local/bin/kubectl_complete-drover\n" +
			"  chmod +x /usr/local/bin/kubectl_complete-drover\n\n  # For kubectl-drover in bash\n  source <(kubectl-drover completion bash)",
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: names, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			write, ok := shells[args[0]]
			if !ok {
				return fmt.Errorf("%q is no shell that is known: it must be one of %v", args[0], names)
			}
			return write(cmd.Root(), a.Out)
		},
	}
}
