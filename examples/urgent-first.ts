/**
 * Urgent first: among keys that are ready the most urgent goes first, and so does the most urgent item of one key. An
 * urgent item also lifts a key that waits with less urgent ones.
 */
import { connect } from "batonq";

await using baton = await connect("memory:");
const tickets = baton.queue<string>("tickets", { levels: ["outage", "question", "newsletter"] });

await tickets.submit("ada", "the newsletter for Ada", { level: "newsletter" });
await tickets.submit("bob", "a question of Bob's", { level: "question" });
await tickets.submit("cy", "the newsletter for Cy", { level: "newsletter" });
await tickets.submit("cy", "an outage at Cy's", { level: "outage" });

const worker = tickets.work((ticket) => console.log(`${ticket.level}: ${ticket.payload}`), { untilEmpty: true });
await worker.stopped;
