import { randomUUID } from "node:crypto";
import type { LocksTarget } from "../../src/conformance/index.ts";
import { locksOnRegister, type LocksOnRegisterOptions } from "../../src/locks/locks-on-register.ts";
import type { Locks } from "../../src/locks/port.ts";
import type { Register } from "../../src/locks/register.ts";
import { TroubledRegister } from "./troubled-register.ts";

export interface RegisterTargetOptions extends Pick<LocksTarget, "name" | "restart" | "skip" | "leaseMs" | "slackMs"> {
  readonly openRegister: () => Promise<Register>;
  readonly limits?: LocksOnRegisterOptions["limits"];
  /** What stands between the locks and the troubles, and above the locks: for flaws. */
  readonly driver?: (register: Register) => Register;
  readonly locks?: (locks: Locks) => Locks;
}

/** Locks on a register, with the troubles that the suite asks for. */
export function registerTarget({
  openRegister,
  limits,
  driver,
  locks: above,
  ...target
}: RegisterTargetOptions): LocksTarget {
  const registers = new WeakMap<Locks, TroubledRegister>();
  const registerOf = (locks: Locks): TroubledRegister => {
    const register = registers.get(locks);
    if (register === undefined) throw new Error("These locks were not opened by this target.");
    return register;
  };
  return {
    ...target,
    async open() {
      const register = new TroubledRegister(await openRegister());
      const below = locksOnRegister({
        name: target.name,
        register: driver?.(register) ?? register,
        newId: randomUUID,
        ...(limits === undefined ? {} : { limits }),
      });
      const locks = above?.(below) ?? below;
      registers.set(locks, register);
      return locks;
    },
    crash: async (locks) => await registerOf(locks).crash(),
    loseReply: (locks) => registerOf(locks).loseReply(),
  };
}
