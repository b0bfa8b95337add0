/**
 * Leader election: three processes, one of which leads. The leader is stopped with SIGTERM and hands over at once; the next one
 * is killed, and another leads when its lease has run out. Whoever looks on is told of every change.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "batonq";

const [role, store = "", candidate = ""] = process.argv.slice(2);
if (role === "candidate") await campaign();
else await main();

async function campaign(): Promise<void> {
  await using baton = await connect(store);
  const election = baton.elect("scheduler", { lease: "1s", data: candidate });
  process.on("SIGTERM", () => void election.stop());
  await election.lead(async (term) => {
    console.log(`${candidate} leads, term ${term.fence}`);
    // A real leader works here, and passes the signal on: it fires when the lead is lost, or to be handed over.
    await once(term.signal, "abort");
  });
  console.log(`${candidate} has stopped`);
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "baton-example-"));
  const candidates = new Map<string, ChildProcess>();
  try {
    const url = `sqlite:${join(folder, "work.db")}`;
    await using baton = await connect(url);
    for (const name of ["ada", "bob", "cy"]) candidates.set(name, fork(import.meta.filename, ["candidate", url, name]));
    const ended = Array.from(candidates.values(), (child) => once(child, "exit"));
    const ends: NodeJS.Signals[] = ["SIGTERM", "SIGKILL", "SIGTERM"];
    await using election = baton.elect("scheduler");
    for await (const leader of election.observe()) {
      console.log(`seen: ${leader?.data ?? "nobody"}`);
      const signal = leader?.data === undefined ? undefined : ends.shift();
      if (leader?.data === undefined || signal === undefined) continue;
      console.log(`${signal} to ${leader.data}`);
      candidates.get(leader.data)?.kill(signal);
      if (ends.length === 0) break;
    }
    await Promise.all(ended);
  } finally {
    for (const child of candidates.values()) child.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}
