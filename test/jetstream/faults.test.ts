import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delivery, Wire } from "../../src/engines/nats/wire.ts";
import { Random } from "../kit/random.ts";
import { CALM_LINE, CALM_SERVER, type LineFaults, randomLine, type Way } from "./faults.ts";
import { type VirtualServer, virtualServer } from "./virtual-server.ts";

const ACK_WAIT_MS = 1_000;

interface World extends VirtualServer {
  readonly wire: ReturnType<VirtualServer["server"]["connect"]>;
}

/** A work queue on `work.>` with one consumer, and a connection. */
function begin(): World {
  const world = virtualServer();
  const wire = world.server.connect();
  const config = { name: "WORK", subjects: ["work.>"], retention: "workqueue", allow_direct: true };
  wire.publish("$JS.API.STREAM.CREATE.WORK", JSON.stringify({ ...config, allow_msg_schedules: true }));
  const consumer = { durable_name: "c", filter_subject: "work.>", ack_policy: "explicit", ack_wait: ACK_WAIT_MS * 1e6 };
  wire.publish("$JS.API.CONSUMER.CREATE.WORK.c.work.>", JSON.stringify({ stream_name: "WORK", config: consumer }));
  world.pass(0);
  return { ...world, wire };
}

/** What arrives at an address, as it comes. */
function collect(wire: Wire, address: string): Delivery[] {
  const got: Delivery[] = [];
  wire.subscribe(address, (delivery) => void got.push(delivery));
  return got;
}

function texts(deliveries: readonly Delivery[]): string[] {
  return deliveries.map(({ data, status }) => (status === 0 ? Buffer.from(data).toString() : String(status)));
}

function pull(wire: Wire, inbox: string, batch = 1): Delivery[] {
  const got = collect(wire, inbox);
  wire.publish("$JS.API.CONSUMER.MSG.NEXT.WORK.c", JSON.stringify({ batch, expires: 60e9 }), { reply: inbox });
  return got;
}

function held({ server }: World): number {
  return server.streams.get("WORK")?.messages.count ?? 0;
}

function losing(way: Way): LineFaults {
  return { ...CALM_LINE, loses: (each) => each === way };
}

test("what is published to a stream also reaches those who listen, on patterns too", () => {
  const { server, wire, pass } = begin();
  const other = server.connect();
  const heard = [collect(other, "work.*"), collect(other, "work.>"), collect(other, "*.b"), collect(other, "work.a")];
  pass(0);
  wire.publish("work.b", "b");
  wire.publish("work.b.c", "c");
  pass(0);
  assert.deepEqual(heard.map(texts), [["b"], ["b", "c"], ["b"], []]);
});

test("a request that nobody listens to is told so, and an unknown one under the API is not", () => {
  const { wire, pass } = begin();
  const got = collect(wire, "inbox");
  wire.publish("nobody", "", { reply: "inbox" });
  wire.publish("$JS.API.NOTHING", "", { reply: "inbox" });
  pass(10_000);
  assert.deepEqual(texts(got), ["503"]);
});

test("a request that is lost changes nothing; a reply that is lost has changed everything", () => {
  const world = begin();
  const { wire, pass } = world;
  const got = collect(wire, "inbox");
  wire.faults = losing("to server");
  wire.publish("work.a", "lost", { reply: "inbox" });
  pass(10);
  assert.equal(held(world), 0);
  wire.faults = losing("from server");
  wire.publish("work.a", "taken", { reply: "inbox" });
  pass(10);
  assert.equal(held(world), 1);
  assert.deepEqual(got, []);
});

test("delays keep the order of each direction", () => {
  const { server, wire, pass } = begin();
  const other = server.connect({ faults: randomLine(new Random(1), { slowestMs: 50, requestLost: 0, replyLost: 0 }) });
  const heard = collect(other, "news");
  pass(100);
  wire.faults = randomLine(new Random(2), { slowestMs: 50, requestLost: 0, replyLost: 0 });
  const sent = Array.from({ length: 50 }, (_, place) => String(place));
  for (const each of sent) wire.publish("news", each);
  pass(10);
  assert.ok(heard.length < sent.length);
  pass(200);
  assert.deepEqual(texts(heard), sent);
});

test("a cut loses what is on its way; what is published meanwhile comes on return, after the subscriptions", () => {
  const world = begin();
  const { wire, pass } = world;
  const ups: boolean[] = [];
  wire.watch((up) => void ups.push(up));
  const got = collect(wire, "inbox");
  pass(0);
  wire.faults = { ...CALM_LINE, delayMs: () => 5 };
  wire.publish("work.a", "on its way", { reply: "inbox" });
  wire.cut();
  wire.publish("work.a", "meanwhile", { reply: "inbox" });
  const late = collect(wire, "late");
  wire.publish("late", "to myself");
  pass(100);
  assert.deepEqual(ups, [false]);
  assert.equal(held(world), 0);
  wire.restore();
  pass(100);
  assert.deepEqual(ups, [false, true]);
  assert.deepEqual(texts(got), ['{"stream":"WORK","seq":1}']);
  assert.deepEqual(texts(late), ["to myself"]);
});

test("until a client notices the cut, what it publishes goes nowhere", () => {
  const world = begin();
  const { wire, pass } = world;
  const ups: boolean[] = [];
  wire.watch((up) => void ups.push(up));
  wire.cut({ clientNoticesMs: 50 });
  wire.publish("work.a", "into the void");
  pass(60);
  assert.deepEqual(ups, [false]);
  wire.publish("work.a", "kept");
  wire.restore();
  pass(0);
  assert.equal(held(world), 1);
});

test("until the server notices the cut, it delivers to nobody, and again when no acknowledgement came", () => {
  const { server, wire, pass } = begin();
  pull(wire, "inbox");
  pass(0);
  wire.cut({ serverNoticesMs: 10 });
  const other = server.connect();
  const got = pull(other, "other");
  other.publish("work.a", "job");
  pass(ACK_WAIT_MS - 1);
  assert.deepEqual(texts(got), []);
  pass(1);
  assert.deepEqual(texts(got), ["job"]);
  assert.match(got[0]?.reply ?? "", /^\$JS\.ACK\.WORK\.c\.2\.1\./);
});

test("one that is killed waits for nothing any more, and nothing of it is heard", () => {
  const world = begin();
  const { server, wire, pass } = world;
  const dead = server.connect();
  const got = pull(dead, "inbox");
  pass(0);
  dead.faults = { ...CALM_LINE, delayMs: () => 5 };
  dead.publish("work.a", "last words");
  dead.kill();
  dead.publish("work.a", "from beyond");
  dead.restore();
  const others = pull(wire, "other");
  wire.publish("work.a", "job");
  pass(0);
  assert.deepEqual(texts(others), ["job"]);
  assert.deepEqual(got, []);
  pass(10);
  assert.equal(held(world), 1);

  const sender = server.connect();
  sender.publish("work.b", "last words");
  sender.kill({ sent: "arrives" });
  pass(0);
  assert.equal(held(world), 2);
});

test("a restart loses those who wait, and keeps messages and what is pending", () => {
  const { server, wire, pass } = begin();
  const ups: boolean[] = [];
  wire.watch((up) => void ups.push(up));
  const got = pull(wire, "inbox", 2);
  wire.publish("work.a", "job");
  pass(0);
  server.restart({ downMs: 100 });
  wire.publish("work.b", "another");
  pass(100);
  assert.deepEqual(ups, [false, true]);
  pass(2 * ACK_WAIT_MS);
  assert.deepEqual(texts(got), ["job"]);
  assert.deepEqual(texts(pullAgain(wire, pass)), ["job", "another"]);
});

test("a restart can forget the last acknowledgements, and those only", () => {
  const world = begin();
  const { server, wire, pass } = world;
  const got = pull(wire, "inbox", 2);
  wire.publish("work.a", "old");
  wire.publish("work.b", "young");
  pass(0);
  const [old, young] = got.map(({ reply }) => reply);
  wire.publish(old ?? "", "+ACK");
  pass(500);
  wire.publish(young ?? "", "+ACK");
  pass(10);
  assert.equal(held(world), 0);
  server.restart({ forgetAcksMs: 100 });
  pass(ACK_WAIT_MS);
  assert.equal(held(world), 1);
  const again = pullAgain(wire, pass);
  assert.deepEqual(texts(again), ["young"]);
  assert.match(again[0]?.reply ?? "", /^\$JS\.ACK\.WORK\.c\.2\.2\./);
  server.restart({});
  pass(ACK_WAIT_MS);
  assert.equal(held(world), 1);
});

test("a direct get can be answered by a copy that is behind, the API cannot", () => {
  const { server, wire, clock, pass } = begin();
  const ask = (subject: string): string[] => {
    const inbox = `inbox.${clock.monotonic()}.${subject.length}`;
    const got = collect(wire, inbox);
    wire.publish(`$JS.API.${subject}`, JSON.stringify({ last_by_subj: "work.a" }), { reply: inbox });
    pass(1);
    return got.map((each) => each.header("Nats-Sequence") ?? `${each.status} ${Buffer.from(each.data).toString()}`);
  };
  for (const each of ["1", "2", "3"]) wire.publish("work.a", each);
  pass(0);
  server.faults = { ...CALM_SERVER, changesBehind: () => 1 };
  assert.deepEqual(ask("DIRECT.GET.WORK"), ["2"]);
  assert.match(ask("STREAM.MSG.GET.WORK")[0] ?? "", /"seq":3/);
  server.faults = { ...CALM_SERVER, changesBehind: () => Infinity };
  assert.match(ask("DIRECT.GET.WORK")[0] ?? "", /^404/);
  pass(100);
  wire.publish("work.a", "4");
  pass(0);
  server.faults = { ...CALM_SERVER, msBehind: () => 50 };
  assert.deepEqual(ask("DIRECT.GET.WORK"), ["3"]);
  server.faults = CALM_SERVER;
  assert.deepEqual(ask("DIRECT.GET.WORK"), ["4"]);
});

test("a schedule fires at its moment, or as late as it is told to", () => {
  const world = begin();
  const { server, wire, clock, pass } = world;
  const schedule = (subject: string, target: string): void => {
    const at = new Date(clock.wall() + 1_000).toISOString();
    const headers = `NATS/1.0\r\nNats-Schedule: @at ${at}\r\nNats-Schedule-Target: ${target}\r\n\r\n`;
    wire.publish(subject, "", { headers });
    pass(0);
  };
  const stored = (subject: string): boolean => server.streams.get("WORK")?.messages.last(subject) !== undefined;
  schedule("work.s.1", "work.t.1");
  server.faults = { ...CALM_SERVER, lateMs: () => 200 };
  schedule("work.s.2", "work.t.2");
  pass(999);
  assert.ok(!stored("work.t.1"));
  pass(1);
  assert.ok(stored("work.t.1") && !stored("work.s.1") && !stored("work.t.2"));
  pass(200);
  assert.ok(stored("work.t.2") && !stored("work.s.2"));
});

test("nothing is planned when nothing is to be waited for", async () => {
  const { time, wire, pass } = begin();
  const got = pull(wire, "inbox");
  wire.publish("work.a", "job");
  pass(0);
  wire.publish(got[0]?.reply ?? "", "+ACK");
  pass(ACK_WAIT_MS);
  assert.equal(time.nextAt, undefined);
  const closed = wire.close();
  pass(0);
  await closed;
});

function pullAgain(wire: Wire, pass: (ms: number) => void): Delivery[] {
  const got = pull(wire, "again", 9);
  pass(0);
  return got;
}
