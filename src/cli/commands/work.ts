import { type Command, InvalidArgumentError } from "commander";
import { type Baton, BatonError, parseDuration, type Queue, type QueueReport, type RetryOptions } from "../../index.ts";
import { endHelp, newCommand } from "../command.ts";
import { countFlag, durationFlag, Flag, globalsOf } from "../flags.ts";
import { Guard } from "../guard/guard.ts";
import { othersIn } from "../known-queue.ts";
import { openStore } from "../store.ts";
import { programOf } from "../work/runnable.ts";
import { runCommand } from "../work/run-command.ts";
import { StopOnSignals } from "../work/stop-on-signals.ts";
import { WorkTeller } from "../work/teller.ts";

interface WorkFlags {
  readonly concurrency?: number;
  readonly lease?: number;
  readonly attempts?: number;
  readonly backoff?: number;
  readonly maxBackoff?: number;
  readonly retryDelay?: number;
  readonly timeout?: number;
  readonly grace?: number;
  readonly name?: string;
  readonly fatalCodes?: readonly number[];
  readonly untilEmpty?: true;
  readonly quiet?: true;
}

const DEFAULT_LEASE_MS = parseDuration("30s", "lease");
const DEFAULT_GRACE_MS = parseDuration("20s", "grace");

export function workCommand(): Command {
  const fatalCodes = new Flag("--fatal-codes <codes>", "exit codes beside 65 that mean a dead letter at once: 64,66");
  fatalCodes.argParser(parseCodes);
  const command = newCommand("work", "Run a command for each item: one at a time per key, the most urgent first.")
    .usage("[options] <queue> -- <command> [arguments...]")
    .argument("<queue>", "the queue")
    .argument("[command...]", "what to run, without a shell, after --")
    .addOption(countFlag("--concurrency <n>", "how many commands run at a time, on different keys (default 1)"))
    .addOption(
      durationFlag(
        "--lease <time>",
        "how long a key stays taken if this worker is lost; renewed meanwhile (default 30s)",
      ),
    )
    .addOption(countFlag("--attempts <n>", "how often an item is tried before it is a dead letter (default 5)"))
    .addOption(
      durationFlag("--backoff <time>", "the longest wait before the second attempt; doubles with each (default 1s)"),
    )
    .addOption(
      durationFlag(
        "--max-backoff <time>",
        "the longest wait before any attempt (default 5m, or --backoff if that is more)",
      ),
    )
    .addOption(
      durationFlag("--retry-delay <time>", "a wait before each attempt that is always the same, instead of --backoff"),
    )
    .addOption(durationFlag("--timeout <time>", "the longest time for one run of the command (default: none)"))
    .addOption(
      durationFlag("--grace <time>", "how long running commands may go on when the worker is stopped (default 20s)"),
    )
    .addOption(fatalCodes)
    .addOption(new Flag("--until-empty", "stop when nothing waits, is delayed or runs in the queue"))
    .addOption(new Flag("--name <name>", "the worker's name in baton status (default: host and process)"))
    .addOption(new Flag("--quiet", "say nothing but warnings"))
    .action(work);
  return endHelp(command, {
    notes: [
      "The command gets the payload on standard input, and BATON_QUEUE, BATON_KEY, BATON_ID, BATON_LEVEL,",
      "BATON_ATTEMPT and BATON_FENCE in its environment (BATON_RUN is our mark). Its exit code decides:",
      "  0      done",
      "  65     bad data: a dead letter at once, as with the codes of --fatal-codes",
      "  other  tried again later (75 says so by name), also when a signal killed it",
      "",
      "Ctrl-C or SIGTERM: takes nothing new, lets running commands finish within --grace, then ends them and gives",
      "their items back without counting the attempt. A second one does so at once. A command that is ended gets",
      "SIGTERM, with everything it started, and SIGKILL 5 s later, or sooner if its lease would not last: a lease of",
      "a minute or more leaves the whole time. If the worker itself is killed or halted, a guard process ends its",
      "commands before the key can go to somebody else.",
      "",
      "With --json, standard output has one JSON object per event; what the command prints goes to standard error.",
    ],
    examples: [
      "baton work cars -- ./paint.sh",
      "baton work cars --concurrency 8 --lease 1m --attempts 3 --until-empty -- python3 paint.py --fast",
      `baton work mail -- sh -c 'echo "$BATON_KEY: $(cat)"'`,
    ],
    exitCodes: [
      "0 stopped as asked: by a signal, or because the queue is empty",
      "1 could not start, or a command could not be ended",
    ],
  });
}

async function work(name: string, words: readonly string[], flags: WorkFlags, command: Command): Promise<void> {
  const needs = "work needs a command to run for each item: baton work <queue> -- <command> [arguments...]";
  const program = programOf(words, command, needs);
  const globals = globalsOf(command);
  const { lease = DEFAULT_LEASE_MS, grace = DEFAULT_GRACE_MS, concurrency, timeout, name: workerName } = flags;
  const teller = new WorkTeller({ json: globals.json === true, quiet: flags.quiet === true });
  using signals = new StopOnSignals({ graceMs: grace, say: (text) => teller.say(text), leave });
  await using baton = await openStore(globals, (event) => teller.tell(event));
  const queue = baton.queue(name);
  const { found, isNew } = await findOrMake(baton, queue);
  // Now: what can fail comes before the first command, which would be ended by it.
  const others = isNew ? await othersIn(baton, name) : undefined;
  await using guard = new Guard({ leaseMs: lease, stdout: globals.json === true ? "stderr" : "inherit" });
  // A key that is taken before a command can start would lose time, or its lease, to the start of a process.
  await guard.ready();
  const runnable = { ...program, fatalCodes: new Set(flags.fatalCodes) };
  const worker = queue.work((item, held) => runCommand(guard, runnable, item, held), {
    lease,
    untilEmpty: flags.untilEmpty === true,
    retry: retryOf(flags, command),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(workerName === undefined ? {} : { name: workerName }),
  });
  signals.started({ stop: (graceMs) => void worker.stop({ grace: graceMs }), kill: () => guard.killAll() });
  teller.started(found, worker.name);
  if (isNew) teller.made(name, others);
  if (baton.caution !== undefined) teller.say(`${baton.caution.detail} ${baton.caution.advice ?? ""}`);
  const report = await worker.stopped;
  teller.stopped(report);
  if (report.abandoned > 0) {
    throw new BatonError(
      "STOPPING",
      `${report.abandoned} item(s) were not settled: a command could not be ended, a lease was lost, or the store did not answer. ` +
        "Their keys are free again when their leases run out, and the attempt counts.",
    );
  }
  signals.ended();
}

/** Without a worker nothing runs that would have to come to an end, and a store that is waited for must not hold us. */
function leave(): never {
  process.exit();
}

/** A queue that cannot be used is an error now, not a worker that waits. */
async function findOrMake(
  baton: Baton,
  queue: Queue<unknown>,
): Promise<{ readonly found: QueueReport; readonly isNew: boolean }> {
  const [before] = await baton.queues({ queue: queue.name });
  return { found: await queue.status(), isNew: before === undefined };
}

/** Named as they are on the command line where they contradict one another. */
function retryOf({ attempts, backoff, maxBackoff, retryDelay }: WorkFlags, command: Command): RetryOptions {
  if (retryDelay !== undefined && (backoff !== undefined || maxBackoff !== undefined))
    command.error("error: --retry-delay is a wait that is always the same; leave out --backoff and --max-backoff");
  if (backoff !== undefined && maxBackoff !== undefined && backoff > maxBackoff)
    command.error("error: --backoff is longer than --max-backoff, which is the longest wait before any attempt");
  return {
    ...(attempts === undefined ? {} : { attempts }),
    ...(backoff === undefined ? {} : { backoff }),
    ...(maxBackoff === undefined ? {} : { maxBackoff }),
    ...(retryDelay === undefined ? {} : { delay: retryDelay }),
  };
}

function parseCodes(text: string): readonly number[] {
  const codes = text.split(",").map((code) => code.trim());
  if (codes.every((code) => /^\d{1,3}$/.test(code) && Number(code) >= 1 && Number(code) <= 255))
    return codes.map(Number);
  throw new InvalidArgumentError("Expected exit codes from 1 to 255, separated by commas.");
}
