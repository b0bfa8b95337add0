/** A server that was away for a moment holds nobody up for longer than that. */
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { Lateness } from "../kit/lateness.ts";
import { NatsDesk, now } from "./desk.ts";

const AWAY_MS = 300;
const SOON_MS = 1_500;

test(
  "what is submitted while the server is away is accepted soon after it is back",
  { timeout: 30_000 },
  async (context) => {
    const { desk, server } = await NatsDesk.withServer(context);
    const cars = (await desk.connect()).queue("cars");
    await cars.submit("car1", null);
    await server.kill();
    // The client has noticed: whatever is sent from here on is sent into the void.
    await wait(AWAY_MS);
    using lateness = new Lateness();
    const submitted = cars.submit("car1", null, { id: "meanwhile" });
    await wait(AWAY_MS);
    await server.restart();
    const back = now();
    await submitted;
    const late = now() - back;
    context.diagnostic(`accepted ${late.toFixed(0)} ms after the server was back`);
    lateness.assertWithin(late, SOON_MS, "the acceptance after the server was back");
  },
);
