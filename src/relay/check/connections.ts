/** Whether what the settings name is there: asked before anything depends on it, and without moving a message. */
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { lookForQueue } from "./baton-queue.ts";
import { messageOf, openTransport } from "../processors/http/transport.ts";
import type {
  DeadLetterSettings,
  HttpSettings,
  ProcessorSettings,
  RelaySettings,
  SourceSettings,
} from "../settings.ts";

export interface Finding {
  /** What was asked for: `source orders`. */
  readonly what: string;
  /** What is wrong; undefined: it is there. */
  readonly problem: string | undefined;
  /** What is worth knowing although nothing is wrong. */
  readonly remark?: string;
}

/** How long any one of them has to answer. */
const PATIENCE_MS = 15_000;

/** Asks sources, places for dead letters, the store of the keys and targets, all at once. Sends no request to a target. */
export async function checkConnections({ routes, keys }: RelaySettings): Promise<readonly Finding[]> {
  const asked: Promise<Finding>[] = [];
  const ask = (what: string, look: () => Promise<unknown>): void => void asked.push(finding(what, look));
  for (const { name, sources, processor } of routes) {
    for (const source of sources) {
      ask(`source ${source.name}`, () => checkSource(source));
      if (source.deadLetter.to === "queue" || source.deadLetter.to === "file")
        ask(`the dead letters of source ${source.name}`, () => checkDeadLetters(source.deadLetter));
    }
    ask(`the ${nounOf(processor)} of route ${name}`, () => checkProcessor(processor));
  }
  if (keys !== undefined) ask("the store of the keys", () => lookForQueue(keys.store, keys.queue));
  return await Promise.all(asked);
}

async function finding(what: string, look: () => Promise<unknown>): Promise<Finding> {
  const late = Promise.withResolvers<never>();
  const seconds = PATIENCE_MS / 1_000;
  const timer = setTimeout(() => late.reject(new Error(`No answer came within ${seconds} s.`)), PATIENCE_MS);
  try {
    const remark = await Promise.race([look(), late.promise]);
    return typeof remark === "string" ? { what, problem: undefined, remark } : { what, problem: undefined };
  } catch (error) {
    return { what, problem: messageOf(error) };
  } finally {
    clearTimeout(timer);
  }
}

async function checkSource({ open, look }: SourceSettings): Promise<string | undefined> {
  if (look !== undefined) return await look();
  const source = await open();
  try {
    await source.check?.();
    return undefined;
  } finally {
    await source.close();
  }
}

async function checkDeadLetters(settings: DeadLetterSettings): Promise<string | undefined> {
  if (settings.to === "queue") return await lookForQueue(settings.store, settings.queue);
  // The file itself is made when the relay starts.
  if (settings.to === "file") await access(dirname(settings.path), constants.W_OK);
  return undefined;
}

async function checkProcessor(processor: ProcessorSettings): Promise<void> {
  if (processor.type === "http") await knock(processor);
  if (processor.type === "command") await findCommand(processor.command);
}

/** A name, a connection, and TLS where the URL asks for it; no request. Where messages say their own URL, nobody knows. */
async function knock(settings: HttpSettings): Promise<void> {
  if (settings.target.type === "attribute") return;
  const transport = await openTransport(settings);
  try {
    const url = new URL(settings.target.url);
    const problem = await transport.knock(url);
    if (problem === undefined) return;
    throw new Error(`${url.origin} could not be reached: ${messageOf(problem)}. No request was sent.`, {
      cause: problem,
    });
  } finally {
    await transport.close();
  }
}

async function findCommand(command: string): Promise<void> {
  const folders = command.includes("/") ? [""] : (process.env["PATH"] ?? "").split(delimiter);
  const found = await Promise.allSettled(folders.map((folder) => access(join(folder, command), constants.X_OK)));
  if (found.some(({ status }) => status === "fulfilled")) return;
  throw new Error(`The command ${command} is not there, or may not be run.`);
}

function nounOf(processor: ProcessorSettings): string {
  if (processor.type !== "http") return processor.type;
  const { target } = processor;
  return target.type === "attribute" ? "target (each message says its own)" : `target ${new URL(target.url).origin}`;
}
