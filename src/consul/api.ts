/** As much of Consul as locks need: sessions, the keys below a prefix, transactions. Nothing is tried twice in here. */
import { type ConsulHttp, denied, type Question, Unanswered } from "./http.ts";
import { fieldsOf, listOf, numberOf, textOf, Unexpected } from "./json.ts";

/** There is no code for it: Consul's own servers tell it by these words from each other's answers. */
const DENIED = "Permission denied";

export interface Entry {
  readonly key: string;
  readonly value: string;
  /** The session that has locked the key. */
  readonly session: string | undefined;
  readonly createIndex: number;
  readonly modifyIndex: number;
}

export interface Entries {
  readonly entries: readonly Entry[];
  /** What a blocking query waits to see exceeded. */
  readonly index: number;
}

export interface SessionSpec {
  readonly name: string;
  readonly ttlMs: number;
  readonly behavior: "release" | "delete";
  readonly lockDelayMs: number;
}

/** One step of a transaction: all are done, or none. */
export type Step =
  | { readonly verb: "cas"; readonly key: string; readonly index: number; readonly value: string }
  | { readonly verb: "lock"; readonly key: string; readonly session: string; readonly value: string }
  | { readonly verb: "check-index"; readonly key: string; readonly index: number }
  | { readonly verb: "check-not-exists" | "delete"; readonly key: string };

/** `index`: of the write, greater than that of every earlier one. `refused`: the steps that could not be done. */
export type Committed =
  | { readonly ok: true; readonly index: number }
  | { readonly ok: false; readonly refused: readonly number[] };

/** Answers when the index has passed this one, or after `waitMs`. */
export interface After {
  readonly index: number;
  readonly waitMs: number;
}

export interface ListOptions {
  readonly after?: After;
  readonly signal?: AbortSignal;
  /** A query that watches holds, which has connections of its own. */
  readonly isForHolds?: boolean;
}

export class ConsulApi {
  readonly #http: ConsulHttp;

  constructor(http: ConsulHttp) {
    this.#http = http;
  }

  async createSession({ name, ttlMs, behavior, lockDelayMs }: SessionSpec): Promise<string> {
    const body = {
      Name: name,
      TTL: `${ttlMs}ms`,
      Behavior: behavior,
      LockDelay: `${lockDelayMs}ms`,
      // With Consul's default, the health of the agent's node, a lease could end before its time.
      NodeChecks: [],
    };
    const { text } = await this.#http.ask({ method: "PUT", path: "/session/create", body });
    return textOf(fieldsOf(parse(text)), "ID");
  }

  /** False: it is over. */
  async renewSession(id: string): Promise<boolean> {
    const { status } = await this.#http.ask({ method: "PUT", path: `/session/renew/${encodeURIComponent(id)}` });
    return status === 200;
  }

  async hasSession(id: string): Promise<boolean> {
    const path = `/session/info/${encodeURIComponent(id)}`;
    const { text } = await this.#http.ask({ method: "GET", path, query: { consistent: "" } });
    return listOf(parse(text)).length > 0;
  }

  async destroySession(id: string): Promise<void> {
    await this.#http.ask({ method: "PUT", path: `/session/destroy/${encodeURIComponent(id)}` });
  }

  /** As the agent knows them; no token is needed. */
  async servers(): Promise<{ readonly leader: string; readonly servers: readonly string[] }> {
    const leader = parse((await this.#http.ask({ method: "GET", path: "/status/leader" })).text);
    const servers = parse((await this.#http.ask({ method: "GET", path: "/status/peers" })).text);
    return { leader: String(leader), servers: listOf(servers).map(String) };
  }

  /** The keys that begin with the prefix, as they stand after every write that was answered. */
  async list(prefix: string, { after, signal, isForHolds = false }: ListOptions = {}): Promise<Entries> {
    return await this.#read({
      method: "GET",
      path: pathOf(prefix),
      query: { recurse: "", consistent: "", ...(after === undefined ? {} : { index: after.index }) },
      ...(after === undefined ? {} : { waitMs: after.waitMs }),
      ...(signal === undefined ? {} : { signal }),
      isForHolds,
    });
  }

  /** One key, when it has changed: as it stands after every write that was answered. */
  async get(
    key: string,
    { index, waitMs }: After,
  ): Promise<{ readonly entry: Entry | undefined; readonly index: number }> {
    const query = { consistent: "", index };
    const found = await this.#read({ method: "GET", path: pathOf(key), query, waitMs, isForHolds: true });
    return { entry: found.entries[0], index: found.index };
  }

  async #read(question: Question): Promise<Entries> {
    const { status, text, index } = await this.#http.ask(question);
    if (index === 0)
      throw new Unexpected("an answer of Consul's has an X-Consul-Index; something in between removes it");
    return { entries: status === 404 ? [] : listOf(parse(text)).map(entryOf), index };
  }

  async commit(steps: readonly Step[]): Promise<Committed> {
    const { status, text } = await this.#http.ask({ method: "PUT", path: "/txn", body: steps.map(operationOf) });
    const { Results: results, Errors: errors } = fieldsOf(parse(text));
    if (status === 409) {
      const refusals = listOf(errors).map(fieldsOf);
      if (refusals.some((one) => textOf(one, "What").includes(DENIED))) throw denied("PUT /txn", DENIED);
      return { ok: false, refused: refusals.map((one) => numberOf(one, "OpIndex")) };
    }
    // All that a transaction writes gets the same index.
    const indexes = listOf(results).map((one) => numberOf(fieldsOf(fieldsOf(one)["KV"]), "ModifyIndex"));
    return { ok: true, index: Math.max(0, ...indexes) };
  }
}

function pathOf(key: string): string {
  return `/kv/${key.split("/").map(encodeURIComponent).join("/")}`;
}

function operationOf(step: Step): unknown {
  return {
    KV: {
      Verb: step.verb,
      Key: step.key,
      ...("index" in step ? { Index: step.index } : {}),
      ...("session" in step ? { Session: step.session } : {}),
      ...("value" in step ? { Value: Buffer.from(step.value, "utf8").toString("base64") } : {}),
    },
  };
}

function entryOf(found: unknown): Entry {
  const fields = fieldsOf(found);
  const { Value: value, Session: session } = fields;
  return {
    key: textOf(fields, "Key"),
    value: typeof value === "string" ? Buffer.from(value, "base64").toString("utf8") : "",
    session: typeof session === "string" && session !== "" ? session : undefined,
    createIndex: numberOf(fields, "CreateIndex"),
    modifyIndex: numberOf(fields, "ModifyIndex"),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    // Cut off, or from something that stands between: whether Consul did anything is not known.
    throw new Unanswered("The answer is not JSON.", true, { cause });
  }
}
