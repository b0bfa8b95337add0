import { startNatsServer } from "../../../servers/nats-server.ts";
import { connectLossy } from "../../locks/nats-handles.ts";
import { Seeds } from "../../kit/seeds.ts";
import { addStoreTests, type RunningStore } from "./add-store-tests.ts";

const start = async (): Promise<RunningStore> => {
  const server = await startNatsServer();
  return {
    connect: async () => (await connectLossy([server.port])).engine,
    stop: () => server.stop(),
    // Servers count in whole seconds, and look for what is over once a second.
    leaseMs: 2_000,
  };
};

addStoreTests("locks on NATS", start, () => new Seeds({ seeds: 40, longestMs: 4_000 }));
