import type { RelayContext } from "../context.ts";
import type { HttpSettings, RouteSettings } from "../settings.ts";
import { functionProcessor } from "./function.ts";
import type { Processor } from "./processor.ts";

/** The processor of a route. `onRoom` is called when it would take more, or less, than before. */
export async function openProcessor(
  context: RelayContext,
  { processor, concurrency }: RouteSettings,
  onRoom: () => void,
): Promise<Processor> {
  switch (processor.type) {
    case "function":
      return functionProcessor(processor);
    case "command": {
      const { commandProcessor } = await import("./command/command.ts");
      return commandProcessor(context, processor, onRoom);
    }
    case "http": {
      const { openHttpProcessor } = await import("./http/http.ts");
      return await openHttpProcessor(context, { ...processor, perHost: perHostOf(processor, concurrency) }, onRoom);
    }
  }
}

/** Where messages say their own URL, a host that hangs must not have every slot: it gets half of them at most. */
function perHostOf({ target, perHost }: HttpSettings, concurrency: number): number {
  if (target.type !== "attribute" || perHost < concurrency) return perHost;
  return Math.max(1, Math.floor(concurrency / 2));
}
