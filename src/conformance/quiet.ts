import { isError } from "../domain/realms.ts";

/**
 * A handle that says nothing more once the case is over. A case that fails leaves calls behind. They end with errors when
 * the handle is closed, and an error that nothing waits for would be taken for the failure, or end the process.
 */
export function quietAfter<T extends object>(handle: T, over: AbortSignal): T {
  return new Proxy(handle, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...parameters: unknown[]): unknown => {
        const answer: unknown = Reflect.apply(value, target, parameters);
        return answer instanceof Promise ? untilOver(answer, over) : answer;
      };
    },
  });
}

function untilOver<T>(answer: Promise<T>, over: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    answer.then(
      (value) => {
        if (!over.aborted) resolve(value);
      },
      (error: unknown) => {
        if (!over.aborted) reject(isError(error) ? error : new Error(String(error)));
      },
    );
  });
}
