import type { RelayContext } from "../context.ts";
import type { RouteSettings } from "../settings.ts";
import { functionProcessor } from "./function.ts";
import type { Processor } from "./processor.ts";

/** The processor of a route. `onRoom` is called when it would take more, or less, than before. */
export async function openProcessor(
  context: RelayContext,
  { processor }: RouteSettings,
  onRoom: () => void,
): Promise<Processor> {
  switch (processor.type) {
    case "function":
      return functionProcessor(processor);
    case "command": {
      const { commandProcessor } = await import("./command/command.ts");
      return commandProcessor(processor);
    }
    case "http": {
      const { openHttpProcessor } = await import("./http/http.ts");
      return await openHttpProcessor(context, processor, onRoom);
    }
  }
}
