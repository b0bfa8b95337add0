/** An operator, an account with JetStream and a user, as the tool nsc would make them. */
import { randomUUID } from "node:crypto";
import { nkeys } from "@nats-io/transport-node";

type KeyPair = ReturnType<typeof nkeys.createUser>;

const WITHOUT_LIMIT = {
  ...Object.fromEntries(["subs", "data", "payload", "imports", "exports", "conn", "leaf"].map((name) => [name, -1])),
  ...Object.fromEntries(["mem_storage", "disk_storage", "streams", "consumer"].map((name) => [name, -1])),
  wildcards: true,
};

/** What a server has to be told, and the file of the user. */
export function issueCredentials(): { readonly config: string; readonly creds: string } {
  const [operator, system, account] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createAccount()];
  const user = nkeys.createUser();
  const systemKey = system.getPublicKey();
  const operatorToken = token(operator, operator, "operator", { system_account: systemKey });
  const systemToken = token(operator, system, "account", {
    limits: { ...WITHOUT_LIMIT, mem_storage: 0, disk_storage: 0 },
  });
  const accountToken = token(operator, account, "account", { limits: WITHOUT_LIMIT });
  const userToken = token(account, user, "user", { subs: -1, data: -1, payload: -1 });
  const config = `
    operator: ${operatorToken}
    system_account: ${systemKey}
    resolver: MEMORY
    resolver_preload: { ${systemKey}: ${systemToken}, ${account.getPublicKey()}: ${accountToken} }
  `;
  const seed = new TextDecoder().decode(user.getSeed());
  const creds = `-----BEGIN NATS USER JWT-----
${userToken}
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
${seed}
------END USER NKEY SEED------
`;
  return { config, creds };
}

function token(issuer: KeyPair, subject: KeyPair, type: string, claims: object): string {
  const body = {
    jti: randomUUID(),
    iat: Math.floor(Date.now() / 1_000),
    iss: issuer.getPublicKey(),
    name: type,
    sub: subject.getPublicKey(),
    nats: { ...claims, type, version: 2 },
  };
  const signed = [{ typ: "JWT", alg: "ed25519-nkey" }, body].map(encode).join(".");
  return `${signed}.${Buffer.from(issuer.sign(new TextEncoder().encode(signed))).toString("base64url")}`;
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
