/** As much of the NATS protocol as it takes to see whether a server answers: one connection, one question. */
import { connect } from "node:net";

const PATIENCE_MS = 2_000;
const HELLO = 'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\n';

export interface ServerInfo {
  readonly version: string;
  readonly server_name: string;
  /** Its name, if the server belongs to one. */
  readonly cluster?: string;
  readonly auth_required?: boolean;
  readonly tls_required?: boolean;
}

/** What the server says of itself as soon as somebody connects. */
export async function serverInfo(port: number): Promise<ServerInfo> {
  const json = await converse(port, "", (heard) => /^INFO (.*)\r\n/.exec(heard)?.[1]);
  return JSON.parse(json) as ServerInfo;
}

export async function ping(port: number): Promise<void> {
  await converse(port, `${HELLO}PING\r\n`, (heard) => (heard.includes("\r\nPONG\r\n") ? heard : undefined));
}

/** A request with JSON in the answer. */
export async function ask(port: number, subject: string, payload: object = {}): Promise<unknown> {
  const body = JSON.stringify(payload);
  const question = `SUB _INBOX.probe 1\r\nPUB ${subject} _INBOX.probe ${Buffer.byteLength(body)}\r\n${body}\r\n`;
  const json = await converse(port, HELLO + question, (heard) => {
    if (/^HMSG /m.test(heard)) throw new Error(`Nobody answers to ${subject}.`);
    const head = /^MSG \S+ 1 (\d+)\r\n/m.exec(heard);
    if (head === null) return undefined;
    const from = head.index + head[0].length;
    const to = from + Number(head[1]);
    return heard.length < to ? undefined : heard.slice(from, to);
  });
  return JSON.parse(json);
}

function converse(port: number, say: string, listen: (heard: string) => string | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(say));
    // One character per byte, as the protocol counts.
    socket.setEncoding("latin1");
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error(`Port ${port} does not answer.`)));
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`Port ${port} hung up.`)));
    socket.on("data", (data: string) => {
      heard += data;
      try {
        const refusal = /^-ERR .*/m.exec(heard)?.[0];
        if (refusal !== undefined) throw new Error(refusal);
        const answer = listen(heard);
        if (answer === undefined) return;
        resolve(Buffer.from(answer, "latin1").toString());
        socket.destroy();
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
  });
}
