import type { Command } from "commander";
import { type HeldLock, parseDuration } from "../../index.ts";
import { endHelp, newCommand } from "../command.ts";
import { durationFlag, Flag, globalsOf } from "../flags.ts";
import { Guard } from "../guard/guard.ts";
import { exitCodeOfCommand, exitCodeOfSignal, runUnderLock } from "../locks/locked-command.ts";
import { onSignals } from "../locks/signals.ts";
import { LockTeller } from "../locks/teller.ts";
import { openStore } from "../store.ts";
import { roughly } from "../times.ts";
import { programOf } from "../work/runnable.ts";

interface ElectFlags {
  readonly lease?: number;
  readonly delayAfterLoss?: number;
  readonly rest?: number;
  readonly data?: string;
  readonly quiet?: true;
}

const DEFAULT_LEASE_MS = parseDuration("15s", "lease");
const DEFAULT_REST_MS = parseDuration("1s", "rest");

export function electCommand(): Command {
  const command = newCommand("elect", "Run a command while leading, in each term of this process, until stopped.")
    .usage("[options] <name> -- <command> [arguments...]")
    .argument("<name>", "the election; it is the lock of the same name")
    .argument("[command...]", "what to run, without a shell, after --")
    .addOption(durationFlag("--lease <time>", "how long nobody leads after a leader was lost (default 15s)"))
    .addOption(
      durationFlag(
        "--delay-after-loss <time>",
        "after a leader was lost, nobody leads for so much longer (default 0s)",
      ),
    )
    .addOption(durationFlag("--rest <time>", "before campaigning again after the command ended by itself (default 1s)"))
    .addOption(
      new Flag("--data <text>", "what others are told about this leader, such as its address", { variable: false }),
    )
    .addOption(new Flag("--quiet", "say nothing but warnings"))
    .action(elect);
  return endHelp(command, {
    notes: [
      "The command runs while this process leads, with BATON_LOCK and BATON_FENCE (the term) in its environment. When it",
      "ends, the lead is given up, and this process is a candidate again. When the lead is lost the command gets SIGTERM,",
      "and SIGKILL 5 s later, or sooner if somebody else may lead by then.",
      "",
      "Ctrl-C or SIGTERM: the command gets SIGTERM and 5 s; then another candidate leads at once. See: baton locks.",
      "",
      "With --json, standard output has one JSON object per event; what the command prints goes to standard error.",
    ],
    examples: [
      "baton elect scheduler -- ./scheduler",
      "baton elect primary --lease 5s --data 10.0.0.5:80 -- ./serve.sh",
    ],
    exitCodes: ["0 stopped as asked, by a signal", "1 anything else"],
  });
}

async function elect(name: string, words: readonly string[], flags: ElectFlags, command: Command): Promise<void> {
  const needs = "elect needs a command to run: baton elect <name> -- <command> [arguments...]";
  const program = programOf(words, command, needs);
  const globals = globalsOf(command);
  const json = globals.json === true;
  const { lease = DEFAULT_LEASE_MS, delayAfterLoss = 0, rest = DEFAULT_REST_MS, data } = flags;
  const teller = new LockTeller({ json, quiet: flags.quiet === true });
  await using baton = await openStore(globals, (event) => teller.hear(event));
  await using guard = new Guard({
    leaseMs: lease,
    delayAfterLossMs: delayAfterLoss,
    stdin: "inherit",
    stdout: json ? "stderr" : "inherit",
  });
  // A new leader should lead at once, not when a process has started.
  guard.warmUp();
  const election = baton.elect(name, { lease, delayAfterLoss, rest, ...(data === undefined ? {} : { data }) });
  let isStopping = false;
  using _signals = onSignals((signal, ends) => {
    // The second does not wait for the store.
    if (ends && isStopping) process.exit(exitCodeOfSignal(signal));
    isStopping ||= ends;
    if (ends) void election.stop();
    else guard.signal(signal);
  });
  await election.lead(async (term) => {
    const { fence } = term;
    teller.tell("elected", { election: name, fence }, `leads ${name} (term ${fence})`);
    const end = await runUnderLock(guard, program, term);
    const code = exitCodeOfCommand(end);
    const why = isLost(term) ? "lost" : "resigned";
    const next = term.signal.aborted ? "" : ` It campaigns again in ${roughly(rest)}.`;
    teller.tell("deposed", { election: name, fence, code, why }, `the command ended with ${code}.${next}`);
  });
}

/** Lost, rather than given up because we were told to stop. */
function isLost({ signal }: HeldLock): boolean {
  return signal.aborted && signal.reason instanceof Error && signal.reason.name === "LockLost";
}
