import type { Command } from "commander";
import { type Baton, type HeldLock, LockBusy, LockLost, type LockOptions, parseDuration } from "../../index.ts";
import { endHelp, newCommand } from "../command.ts";
import { countFlag, durationFlag, Flag, globalsOf } from "../flags.ts";
import { Guard } from "../guard/guard.ts";
import { exitCodeOfCommand, exitCodeOfSignal, runUnderLock } from "../locks/locked-command.ts";
import { onSignals } from "../locks/signals.ts";
import { LockTeller } from "../locks/teller.ts";
import { openStore } from "../store.ts";
import { type Program, programOf } from "../work/runnable.ts";

interface LockFlags {
  readonly lease?: number;
  /** False: --no-wait. */
  readonly wait?: number | false;
  readonly delayAfterLoss?: number;
  readonly slots?: number;
  readonly data?: string;
  readonly quiet?: true;
}

const DEFAULT_LEASE_MS = parseDuration("15s", "lease");
/** What is left of a wait that was given up runs out by itself, if the store cannot be told within this. */
const GIVE_UP_MS = 2_000;
/** Whoever still waits after this is told what for. */
const TELL_AFTER_MS = 500;

export function lockCommand(): Command {
  const command = newCommand("lock", "Run a command while holding a lock: one at a time, everywhere.")
    .usage("[options] <name> -- <command> [arguments...]")
    .argument("<name>", "the lock; made by its first use")
    .argument("[command...]", "what to run, without a shell, after --")
    .addOption(
      durationFlag(
        "--lease <time>",
        "how long it stays taken if this process is lost; renewed meanwhile (default 15s)",
      ),
    )
    .addOption(durationFlag("--wait <time>", "how long to wait for it (default: for ever)"))
    .addOption(new Flag("--no-wait", "do not wait: if others have it, exit with 3", { variable: false }))
    .addOption(
      durationFlag(
        "--delay-after-loss <time>",
        "if this process is lost, nobody gets the lock for so much longer than the lease (default 0s)",
      ),
    )
    .addOption(countFlag("--slots <n>", "how many may hold it at a time; all must say the same (default 1)"))
    .addOption(new Flag("--data <text>", "shown by baton locks", { variable: false }))
    .addOption(new Flag("--quiet", "say nothing but warnings"))
    .action(lock);
  return endHelp(command, {
    notes: [
      "The command has this terminal's input and output, and BATON_LOCK and BATON_FENCE in its environment (BATON_RUN is our",
      "mark). The fence is a number that only rises: let what you write to refuse a lower one than it has seen.",
      "It runs in a session of its own, so that all it starts can be ended with it: /dev/tty and job control are not there.",
      "",
      "Signals go to the command, with everything it started; the lock is free when it has ended. While waiting, Ctrl-C gives",
      "up at once. If the lock is lost the command gets SIGTERM, and SIGKILL 5 s later, or sooner if the lock may be",
      "somebody else's by then: a lease of a minute, or a delay after loss of 5 s, leaves the whole time. If this process",
      "is killed or halted, a guard process ends the command before the lock can go to somebody else.",
      "",
      "With --json, standard output has one JSON object per event; what the command prints goes to standard error.",
    ],
    examples: [
      "baton lock nightly --no-wait -- ./report.sh",
      "baton lock deploy/web --wait 5m --lease 1m -- ./deploy.sh --all",
      `baton lock ledger -- sh -c 'psql -v fence="$BATON_FENCE" -f close-day.sql'`,
    ],
    exitCodes: [
      "that of the command; 128 + n if signal n ended it, or the wait for the lock",
      "3 not acquired: others have it",
      "4 the lock was lost while the command ran; it was ended",
      "1 anything else",
    ],
  });
}

async function lock(name: string, words: readonly string[], flags: LockFlags, command: Command): Promise<void> {
  const needs = "lock needs a command to run: baton lock <name> -- <command> [arguments...]";
  const program = programOf(words, command, needs);
  const globals = globalsOf(command);
  const json = globals.json === true;
  const { lease = DEFAULT_LEASE_MS, delayAfterLoss = 0 } = flags;
  const teller = new LockTeller({ json, quiet: flags.quiet === true });
  await using baton = await openStore(globals, (event) => teller.hear(event));
  await using guard = new Guard({
    leaseMs: lease,
    delayAfterLossMs: delayAfterLoss,
    stdin: "inherit",
    stdout: json ? "stderr" : "inherit",
  });
  if (flags.wait !== false) guard.warmUp();
  const held = await acquire(baton, name, { ...optionsOf(flags), lease, delayAfterLoss }, guard, teller);
  // Undefined: a signal came first, and has set the exit code.
  if (held !== undefined) await run(guard, program, held, teller);
}

async function run(guard: Guard, program: Program, held: HeldLock, teller: LockTeller): Promise<void> {
  // Before the lock, so that it is heard until the lock is free: a second Ctrl-C must not leave it behind.
  using _signals = onSignals((signal) => guard.signal(signal));
  await using lockHeld = held;
  const { name, fence } = held;
  teller.tell("acquired", { lock: name, fence });
  const end = await runUnderLock(guard, program, lockHeld);
  try {
    held.check();
    if (!(await letGo(held, teller))) throw new LockLost(name, fence, "the store did not have it any more");
  } catch (error) {
    teller.tell("lost", { lock: name, fence });
    throw error;
  }
  const code = exitCodeOfCommand(end);
  process.exitCode = code;
  teller.tell("released", { lock: name, fence, code });
}

/** False: it was lost while the command ran. */
async function letGo(held: HeldLock, teller: LockTeller): Promise<boolean> {
  try {
    return await held.release();
  } catch (error) {
    // No answer is no loss: by its lease the lock was held.
    teller.hear({ type: "trouble", doing: `releasing lock ${held.name}`, error, failures: 1, forMs: 0 });
    return true;
  }
}

/** The first signal gives up waiting; the second does not wait for the store either. */
async function acquire(
  baton: Baton,
  name: string,
  options: LockOptions,
  guard: Guard,
  teller: LockTeller,
): Promise<HeldLock | undefined> {
  const giveUp = new AbortController();
  using _signals = onSignals((signal, ends) => {
    if (!ends) return;
    process.exitCode = exitCodeOfSignal(signal);
    if (giveUp.signal.aborted) process.exit();
    giveUp.abort();
    // A store that is away must not hold on to whoever gave up.
    setTimeout(() => process.exit(), GIVE_UP_MS).unref();
  });
  try {
    const held = await tellingWhy(baton, name, teller, baton.lock(name, { ...options, signal: giveUp.signal }));
    // A signal that comes before there is a command to pass it on to is for us.
    await guard.ready();
    if (!giveUp.signal.aborted) return held;
    await held.release();
    return undefined;
  } catch (error) {
    if (giveUp.signal.aborted) return undefined;
    if (error instanceof LockBusy) teller.refused(error);
    throw error;
  }
}

/** If it takes a while, says what is in the way. That it takes a while is not worth a word by itself. */
async function tellingWhy(
  baton: Baton,
  name: string,
  teller: LockTeller,
  acquiring: Promise<HeldLock>,
): Promise<HeldLock> {
  let waits = true;
  const tell = async (): Promise<void> => {
    const reports = await baton.locks().catch(() => []);
    const report = reports.find((one) => one.name === name);
    if (waits && report !== undefined) teller.waiting(name, report);
  };
  const patience = setTimeout(() => void tell(), TELL_AFTER_MS);
  try {
    return await acquiring;
  } finally {
    waits = false;
    clearTimeout(patience);
  }
}

function optionsOf({ wait, slots, data }: LockFlags): LockOptions {
  return {
    ...(wait === undefined ? {} : { wait: wait === false ? 0 : wait }),
    ...(slots === undefined ? {} : { slots }),
    ...(data === undefined ? {} : { data }),
  };
}
