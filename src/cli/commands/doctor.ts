import type { Command } from "commander";
import type { Baton, Finding, Repair } from "../../index.ts";
import { endHelp, newCommand } from "../command.ts";
import { Flag, type GlobalFlags, globalsOf } from "../flags.ts";
import { printJson, printLine } from "../output.ts";
import { printable } from "../printable.ts";
import { displayUrl, openExistingStore, storeUrl } from "../store.ts";

export function doctorCommand(): Command {
  const command = newCommand("doctor", "Say what is wrong with the store: versions, durability, damage.")
    .addOption(
      new Flag("--repair", "repair damage that can be repaired; says what it does before it does it", {
        variable: false,
      }),
    )
    .action(doctor);
  return endHelp(command, {
    notes: ["What --repair removes is printed with --json, in base64: keep that output."],
    examples: [
      "baton doctor",
      "baton doctor --store sqlite:work.db --json",
      "baton doctor --repair --json > repaired.json",
    ],
    exitCodes: ["0 nothing is wrong, though there may be warnings", "1 something is wrong"],
  });
}

async function doctor(flags: { readonly repair?: true }, command: Command): Promise<void> {
  const globals = globalsOf(command);
  if (flags.repair === true) await repair(globals);
  await check(globals);
}

/** One after the other: each may make the next one right. */
async function repair(globals: GlobalFlags): Promise<void> {
  const baton = await openExistingStore(globals);
  if (baton === undefined) return;
  await using opened: Baton = baton;
  const repairs = await opened.repairs();
  if (repairs.length === 0 && globals.json !== true) printLine("repair   nothing that can be repaired was found");
  for (const one of repairs) {
    if (globals.json === true) printJson({ repair: fieldsOf(one) });
    else for (const line of announce(one)) printLine(line);
    await one.run();
  }
}

function announce({ subject, detail, action }: Repair): readonly string[] {
  return [`repair   ${printable(subject)}: ${printable(detail)}`, `         ${printable(action)}`];
}

function fieldsOf({ subject, detail, action, content }: Repair): object {
  const removed = content === undefined ? {} : { content: Buffer.from(content).toString("base64") };
  return { subject, detail, action, ...removed };
}

async function check(globals: GlobalFlags): Promise<void> {
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
