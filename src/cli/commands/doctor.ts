import type { Command } from "commander";
import type { Finding } from "../../index.ts";
import { endHelp, newCommand } from "../command.ts";
import { globalsOf } from "../flags.ts";
import { printJson, printLine } from "../output.ts";
import { printable } from "../printable.ts";
import { displayUrl, openExistingStore, storeUrl } from "../store.ts";

export function doctorCommand(): Command {
  const command = newCommand("doctor", "Say what is wrong with the store: versions, durability, damage.").action(
    doctor,
  );
  return endHelp(command, {
    examples: ["baton doctor", "baton doctor --store sqlite:work.db --json"],
    exitCodes: ["0 nothing is wrong, though there may be warnings", "1 something is wrong"],
  });
}

async function doctor(_flags: object, command: Command): Promise<void> {
  const globals = globalsOf(command);
  const store = displayUrl(storeUrl(globals));
  const findings: Finding[] = [
    { severity: "ok", subject: "node", detail: `${process.versions.node} (${process.execPath})` },
  ];
  const baton = await openExistingStore(globals);
  if (baton === undefined) {
    const advice = "The first baton submit or baton work makes it. If you expected one, check --store and $BATON_URL.";
    findings.push({ severity: "warning", subject: "store", detail: `${store} does not exist yet`, advice });
  } else {
    await using opened = baton;
    findings.push(
      { severity: "ok", subject: "store", detail: `${store} (${opened.engine})` },
      ...(await opened.check()),
    );
  }
  if (globals.json === true) printJson({ node: process.versions.node, store, findings });
  else for (const line of findings.flatMap(describe)) printLine(line);
  if (findings.some(({ severity }) => severity === "error")) process.exitCode = 1;
}

function describe({ severity, subject, detail, advice }: Finding): string[] {
  const line = `${severity.padEnd(7)}  ${printable(subject)}: ${printable(detail)}`;
  return advice === undefined ? [line] : [line, `         ${printable(advice)}`];
}
