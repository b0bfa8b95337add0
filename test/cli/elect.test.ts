/** Candidates in shells of their own. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { until } from "../kit/until.ts";
import { Desk, type Started } from "./baton-command.ts";
import { lockStores } from "./lock-stores.ts";

/** Notes who leads, and when. Ends at once when it is told to. */
const LEAD = `echo "leads $0 $BATON_FENCE $(date +%s%N)" >> events; trap 'exit 0' TERM; while :; do sleep 0.1; done`;

function candidate(desk: Desk, election: string, name: string, flags: readonly string[]): Started {
  return desk.start(["elect", election, ...flags, "--data", name, "--", "sh", "-c", LEAD, name]);
}

async function untilLeads(desk: Desk, name: string): Promise<string[]> {
  await until(() => desk.read("events").includes(`leads ${name}`), `${name} to lead`);
  return (desk.lines("events").find((line) => line.startsWith(`leads ${name}`)) ?? "").split(" ");
}

async function untilInLine(desk: Desk, election: string): Promise<void> {
  const baton = await desk.baton();
  await until(
    async () => (await baton.locks()).some(({ name, waiting }) => name === election && waiting === 1),
    "a follower in line",
  );
}

describe("baton elect", { concurrency: 2, timeout: 180_000 }, () => {
  for (const store of lockStores()) {
    test(`${store.name}: a deploy: the leader gets SIGTERM, and a follower leads at once`, async (context) => {
      const desk = store.desk(context);
      const flags = ["--lease", "10m"];
      const ada = candidate(desk, "boss", "ada", flags);
      const [, , firstFence] = await untilLeads(desk, "ada");
      const bob = candidate(desk, "boss", "bob", flags);
      await untilInLine(desk, "boss");
      const election = (await desk.baton()).elect("boss");
      assert.equal((await election.leader())?.data, "ada");
      const toldAt = Date.now();
      process.kill(ada.pid, "SIGTERM");
      const [, , secondFence, at] = await untilLeads(desk, "bob");
      // The first step of the follower's command; figures are for people, and the lease of ten minutes is the proof.
      context.diagnostic(`a follower leads after ${Math.round(Number(at) / 1e6 - toldAt)} ms`);
      assert.ok(Number(secondFence) > Number(firstFence));
      assert.equal((await election.leader())?.data, "bob");
      assert.equal((await ada.finished).code, 0);
      process.kill(bob.pid, "SIGINT");
      assert.equal((await bob.finished).code, 0);
      assert.equal(await election.leader(), undefined);
    });

    test(`${store.name}: a leader gets SIGKILL, and a follower leads after the lease`, async (context) => {
      const desk = store.desk(context);
      const flags = ["--lease", "2s"];
      const ada = candidate(desk, "chief", "ada", flags);
      await untilLeads(desk, "ada");
      const bob = candidate(desk, "chief", "bob", flags);
      await untilInLine(desk, "chief");
      process.kill(ada.pid, "SIGKILL");
      await untilLeads(desk, "bob");
      process.kill(bob.pid, "SIGTERM");
      assert.equal((await bob.finished).code, 0);
    });
  }

  test("a leader that was halted is led by another, and is a candidate again when it comes back", async (context) => {
    const desk = new Desk(context);
    const flags = ["--lease", "2s", "--rest", "10ms"];
    const ada = candidate(desk, "boss", "ada", flags);
    await untilLeads(desk, "ada");
    const bob = candidate(desk, "boss", "bob", flags);
    await untilInLine(desk, "boss");
    process.kill(ada.pid, "SIGSTOP");
    await untilLeads(desk, "bob");
    process.kill(ada.pid, "SIGCONT");
    await untilInLine(desk, "boss");
    process.kill(bob.pid, "SIGTERM");
    await until(() => desk.lines("events").length === 3, "the third term");
    assert.match(desk.lines("events")[2] ?? "", /^leads ada/);
    process.kill(ada.pid, "SIGTERM");
    assert.deepEqual([(await bob.finished).code, (await ada.finished).code], [0, 0]);
  });

  test("runs the command again and again, in a new term each", async (context) => {
    const desk = new Desk(context);
    const words = ["elect", "boss", "--rest", "10ms", "--json", "--", "sh", "-c", "echo $BATON_FENCE >> terms; exit 3"];
    const candidates = desk.start(words);
    await until(() => desk.lines("terms").length >= 3, "three terms");
    process.kill(candidates.pid, "SIGTERM");
    const { code, stdout } = await candidates.finished;
    assert.equal(code, 0);
    const terms = desk.lines("terms").map(Number);
    assert.deepEqual(
      terms,
      [...new Set(terms)].toSorted((a, b) => a - b),
    );
    assert.match(
      stdout,
      /"event":"elected".*\n.*"event":"deposed","at":\d+,"election":"boss","fence":\d+,"code":3,"why":"resigned"/,
    );
  });
});
