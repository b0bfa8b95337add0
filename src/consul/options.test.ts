import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidInput } from "../domain/errors.ts";
import { consulSettings, parseConsulUrl } from "./options.ts";

test("a URL says where, below which prefix, and how", () => {
  assert.deepEqual(parseConsulUrl("consul://c1:8500/team/locks?dc=east&ns=ops&token-file=/t&shortest-lease=2s"), {
    address: "c1:8500",
    prefix: "team/locks",
    datacenter: "east",
    namespace: "ops",
    tokenFile: "/t",
    shortestLeaseMs: 2_000,
  });
  assert.deepEqual(parseConsulUrl("consul+https://c1:8501/?ca=/ca.pem&cert=/c.pem&key=/k.pem&verify=false"), {
    address: "c1:8501",
    tls: { ca: "/ca.pem", cert: "/c.pem", key: "/k.pem", verify: false },
  });
  assert.deepEqual(parseConsulUrl("consul:"), {});
  assert.deepEqual(parseConsulUrl("consul://"), {});
  assert.deepEqual(parseConsulUrl("consul+http://c1"), { address: "c1", tls: false });
});

test("a URL that is not understood is refused, without its secrets", () => {
  for (const url of [
    "consul://u:secret@c1",
    "consul://c1?tokn=secret",
    "consul+ftp://c1",
    "consul://c1?verify=perhaps",
  ]) {
    assert.throws(
      () => parseConsulUrl(url),
      (error) => error instanceof InvalidInput && !error.message.includes("secret"),
      url,
    );
  }
});

test("what is not said is what Consul's own variables say", () => {
  const environment = {
    CONSUL_HTTP_ADDR: "https://c2:8501/",
    CONSUL_HTTP_TOKEN: "a token",
    CONSUL_HTTP_AUTH: "user:password",
    CONSUL_HTTP_SSL_VERIFY: "0",
    CONSUL_CACERT: "/ca.pem",
    CONSUL_CLIENT_CERT: "/c.pem",
    CONSUL_CLIENT_KEY: "/k.pem",
    CONSUL_TLS_SERVER_NAME: "server.dc1.consul",
    CONSUL_NAMESPACE: "ops",
  };
  const settings = consulSettings({}, environment);
  assert.equal(settings.origin, "https://c2:8501");
  assert.equal(settings.token, "a token");
  assert.equal(settings.basicAuth, "user:password");
  assert.equal(settings.namespace, "ops");
  assert.deepEqual(settings.tls, {
    ca: "/ca.pem",
    cert: "/c.pem",
    key: "/k.pem",
    serverName: "server.dc1.consul",
    verify: false,
  });
  assert.equal(consulSettings({ address: "c3:8500", tls: false }, environment).origin, "http://c3:8500");
  assert.equal(consulSettings({ address: "c3:8500" }, { CONSUL_HTTP_SSL: "true" }).origin, "https://c3:8500");
  // A file that was named here means more than a token that was left in the environment.
  assert.equal(consulSettings({ tokenFile: "/t" }, environment).token, undefined);
});

test("without a word: the agent on this machine, unencrypted, ten seconds at least", () => {
  const settings = consulSettings({}, { CONSUL_HTTP_TOKEN: "" });
  assert.equal(settings.origin, "http://127.0.0.1:8500");
  assert.equal(settings.prefix, "baton/locks");
  assert.equal(settings.token, undefined);
  assert.equal(settings.shortestLeaseMs, 10_000);
});

test("a socket of this machine", () => {
  const settings = consulSettings({}, { CONSUL_HTTP_ADDR: "unix:///var/run/consul.sock" });
  assert.equal(settings.socket, "/var/run/consul.sock");
  assert.equal(settings.origin, "http://localhost");
});

test("a prefix that would not be a key is refused", () => {
  for (const prefix of ["/a", "a//b", "a/", "..", "a b"]) {
    assert.throws(() => consulSettings({ prefix }, {}), InvalidInput, prefix);
  }
});
