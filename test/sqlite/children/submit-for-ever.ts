/** Submits until it is killed, and writes down what was accepted as soon as it knows. */
import { appendFileSync } from "node:fs";
import { connect } from "../../../src/index.ts";

const [url = "", round = "", acknowledged = ""] = process.argv.slice(2);
const baton = await connect(url);
const cars = baton.queue("cars");

async function submitAgainAndAgain(lane: number): Promise<void> {
  for (let number = 1; ; number += 1) {
    const id = `${round}-${lane}-${number}`;
    await cars.submit(`car${number % 20}`, "x".repeat(number % 500), { id });
    appendFileSync(acknowledged, `${id}\n`);
    if (number % 10 === 0) process.send?.("ten more");
  }
}

await Promise.all([1, 2, 3].map(submitAgainAndAgain));
