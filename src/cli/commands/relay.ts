import type { Command } from "commander";
import { InvalidInput } from "../../index.ts";
import type { Relay, RelayEvent, RelaySettings } from "../../relay/index.ts";
import { endHelp, newCommand } from "../command.ts";
import { Flag, globalsOf } from "../flags.ts";
import { printError, printJson, printLine } from "../output.ts";
import { printable } from "../printable.ts";

/** For what is still being put away when the relay has stopped. */
const LEAVE_MS = 2_000;

interface RelayFlags {
  readonly config: string;
  readonly check?: true;
  readonly connect?: true;
  readonly quiet?: true;
}

export function relayCommand(): Command {
  const config = new Flag("--config <file>", "the configuration, JSON or YAML", { variable: "BATON_RELAY_CONFIG" });
  const command = newCommand(
    "relay",
    "Deliver messages of cloud queues and Baton queues to an application, urgent ones first.",
  )
    .usage("[options] --config <file>")
    .addOption(config.makeOptionMandatory())
    .addOption(new Flag("--check", "only say what is wrong with the configuration, or missing", { variable: false }))
    .addOption(
      new Flag("--connect", "with --check: ask whether queues, credentials and targets are there", { variable: false }),
    )
    .addOption(new Flag("--quiet", "log only what went wrong"))
    .action(relay);
  return endHelp(command, {
    notes: [
      "A message is acknowledged when the application has handled it, and comes again otherwise: at least once. Standard output has",
      "one JSON object per event.",
      "",
      "SIGTERM or Ctrl-C: takes nothing new, lets deliveries finish within the grace period of the configuration, then breaks them",
      "off and gives their messages back. A second one does so at once. SIGHUP reads the configuration again; one that is wrong is",
      "refused, and the relay goes on as it was. When nobody reads standard output any more, it stops as on SIGTERM.",
    ],
    examples: [
      "baton relay --config relay.yaml --check",
      "baton relay --config relay.yaml --check --connect",
      "baton relay --config relay.yaml",
    ],
    exitCodes: [
      "0 stopped as asked; with --check, nothing is wrong and nothing missing",
      "1 could not start, --check found something, a delivery could not be ended, or nobody read the log any more",
    ],
  });
}

async function relay({ config, check, connect, quiet }: RelayFlags, command: Command): Promise<void> {
  if (connect === true && check !== true)
    throw new InvalidInput("--connect", true, "--check beside it: it is a part of the check");
  // Loaded here: the other commands do not pay for it.
  const { createRelay, eventFields, levelOf } = await import("../../relay/index.ts");
  const { readConfig } = await import("../../relay/config/read-config.ts");
  // A hang-up that comes before there is anything to reload must not end us: the configuration is being read anyhow.
  process.on("SIGHUP", () => undefined);
  const settings = await readConfig(config);
  if (check === true) return await checkSettings(settings, connect === true, globalsOf(command).json === true);
  const log = (event: RelayEvent): void => {
    const level = levelOf(event);
    if (quiet !== true || level !== "info") printJson({ at: new Date().toISOString(), level, ...eventFields(event) });
  };
  const unread = untilUnread();
  const running = await createRelay(settings, { onEvent: log });
  if (running.adminUrl !== undefined)
    printJson({ at: new Date().toISOString(), level: "info", event: "admin", url: running.adminUrl });
  const reload = async (): Promise<void> => {
    try {
      await running.reload(await readConfig(config));
    } catch (error) {
      log({ type: "trouble", doing: "reading the configuration again; the relay goes on as it was", error });
    }
  };
  const { abandoned } = await untilStopped(running, reload, unread);
  if (abandoned > 0) process.exitCode = 1;
  // What is stopped is stopped: something that was being opened for a reload, and hangs, does not keep the process.
  setTimeout(() => process.exit(), LEAVE_MS).unref();
}

/**
 * Resolves when the reader of standard output has gone. Other commands leave at once then; a service has work in hand,
 * which must not be cut off.
 */
function untilUnread(): Promise<void> {
  process.stdout.removeAllListeners("error");
  // Perhaps the same reader has both, and nobody is left to tell.
  process.stderr.on("error", () => undefined);
  return new Promise((resolve) => process.stdout.on("error", () => resolve()));
}

/** The first signal drains, the second hurries. */
async function untilStopped(
  running: Relay,
  reload: () => Promise<void>,
  unread: Promise<void>,
): Promise<{ readonly abandoned: number }> {
  const stopped = Promise.withResolvers<Awaited<ReturnType<Relay["stop"]>>>();
  const stop = (): void => stopped.resolve(running.stop());
  const hangUp = (): void => void reload();
  void unread.then(() => {
    // A reader that Ctrl-C has ended with us does not hurry us.
    if (running.report().state !== "running") return;
    printError("Nobody reads the log any more. The relay stops; start it again with somebody who does.");
    process.exitCode = 1;
    stop();
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, stop);
  process.on("SIGHUP", hangUp);
  try {
    return await stopped.promise;
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, stop);
    process.off("SIGHUP", hangUp);
  }
}

/** Says what the settings are, what is missing to run them, and, if asked, what does not answer. */
async function checkSettings(settings: RelaySettings, connect: boolean, json: boolean): Promise<void> {
  const { checkConnections, missingPackages, missingText } = await import("../../relay/index.ts");
  const routes = settings.routes.map(({ name, sources, processor, concurrency, choice }) => ({
    route: name,
    sources: sources.map((source) => source.name),
    choice,
    concurrency,
    processor: processor.type,
  }));
  const { warnings = [] } = settings;
  const missing = await missingPackages(settings);
  // What is missing cannot be asked with.
  const findings = connect && missing.length === 0 ? await checkConnections(settings) : [];
  if (missing.length > 0 || findings.some(({ problem }) => problem !== undefined)) process.exitCode = 1;
  if (json) {
    const connections = connect ? { connections: findings } : {};
    return printJson({ routes, warnings, missing, ...connections });
  }
  for (const { route, sources, choice, concurrency, processor } of routes) {
    const list = sources.map(printable).join(", ");
    printLine(`${printable(route)}: ${list} (${choice}) to a processor of type ${processor}, ${concurrency} at a time`);
  }
  for (const warning of warnings) printLine(`warning: ${printable(warning)}`);
  for (const { what, problem, remark } of findings) {
    const rest = problem ?? remark;
    const more = rest === undefined ? "" : `: ${printable(rest)}`;
    printLine(`${problem === undefined ? "ok" : "not ok"}: ${printable(what)}${more}`);
  }
  if (missing.length > 0) printError(missingText(missing));
}
