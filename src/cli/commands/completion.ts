import { Argument, type Command } from "commander";
import { endHelp, newCommand } from "../command.ts";
import { bashCompletion } from "../completion/bash.ts";
import { fishCompletion } from "../completion/fish.ts";
import { shapeOf, type ProgramShape } from "../completion/shape.ts";
import { zshCompletion } from "../completion/zsh.ts";

type Shell = "bash" | "zsh" | "fish";

const SCRIPTS: Readonly<Record<Shell, (shape: ProgramShape) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

/** Made from the commands themselves, so that it cannot fall behind them. */
export function completionCommand(root: Command): Command {
  const command = newCommand("completion", "Print a completion script for your shell.")
    .addArgument(new Argument("<shell>", "which one").choices(["bash", "zsh", "fish"]))
    .action((shell: Shell) => {
      process.stdout.write(SCRIPTS[shell](shapeOf(root)));
    });
  return endHelp(command, {
    examples: [
      `bash:  eval "$(baton completion bash)"       in ~/.bashrc`,
      `zsh:   eval "$(baton completion zsh)"        in ~/.zshrc, after compinit`,
      "fish:  baton completion fish > ~/.config/fish/completions/baton.fish",
    ],
  });
}
