import { DUE_AT_A_TIME, KEPT_US, REPAIR_US } from "./bounds.ts";

/** Leases: how they begin, are compared, moved and ended, and what happens because time passes. */
export const LEASES: string = String.raw`
function F.beginLease(name, k, worker, leaseUs)
  k.state, k.fence, k.worker, k.since = 'leased', F.nextNumber(), worker, now
  k.progress, k.cancel, k.asked = false, false, ARGV[4]
  F.extend(name, k, leaseUs)
end

function F.extend(name, k, leaseUs)
  k.deadline = now + leaseUs
  C.leases[name] = k.deadline
  if k.deadline < S.dueFrom then S.dueFrom = k.deadline end
  F.save(name)
end

-- The lease is over: if somebody waits to hold the key, it is kept for them.
function F.letGo(name, k)
  C.leases[name] = false
  if k.covered > 1 then F.uncover(k) end
  k.fence, k.deadline, k.worker, k.progress, k.held, k.state = 0, 0, '', false, false, 'idle'
  if k.wanted then
    k.kept = now + ${KEPT_US}
    F.later('K' .. name, k.kept)
    S.freed[#S.freed + 1] = name
  end
  F.save(name)
end

-- The lease is over, and its item, if it had one, waits again where it stood.
function F.endLease(name, k)
  local held = k.held
  F.letGo(name, k)
  if held then return F.resume(name, k) end
  S.running = S.running - 1
  if k.cancel then
    F.endHead(name, k, 'cancelled')
    return F.promote(name, k)
  end
  F.count(k, k.level, 1)
  F.resume(name, k)
end

-- Nobody settled in time.
function F.expireLease(name, k)
  if not k.held then
    k.alone = math.max(k.alone, k.covered)
    if not k.cancel then F.noteAttempt(k, 'lost', '') end
  end
  F.endLease(name, k)
end

-- The one place where a lease is compared: same fence, not run out (G2).
function F.current(name, fence)
  local k = F.findKey(name)
  if k and k.fence > 0 and k.fence == fence and k.deadline > now then return k end
end

-- Nobody came for a key that was kept for a hold, or they gave up.
function F.keepNoMore(name, k)
  F.never('K' .. name)
  k.kept, k.wanted = 0, false
  if k.state == 'parked' and not k.paused then F.open(name, k) end
  F.save(name)
end

function F.comeDue(member)
  local mark, rest = string.sub(member, 1, 1), string.sub(member, 2)
  F.never(member)
  if mark == 'B' or mark == 'K' then
    local k = F.lookAtKey(rest)
    if not k or k.state == 'damaged' then return end
    if mark == 'K' then return F.keepNoMore(rest, k) end
    k.state, k.place, k.due = 'idle', F.nextNumber(), 0
    return F.open(rest, k)
  end
  local seq = rest
  local item = F.findItem(seq)
  local k = item and F.lookAtKey(item.key)
  if not k then return end
  -- It arrives when somebody has repaired its key.
  if k.state == 'damaged' then return F.later(member, now + ${REPAIR_US}) end
  F.undelay(item.key, k, seq)
  F.arrive(item.key, k, seq, item.level, mark == 'Y')
end

-- Everything that happens because time passes: delayed items arrive, back-offs end, leases run out.
function F.advance()
  if now < S.dueFrom then return end
  S.looked, S.changed = true, true
  local atATime = ${DUE_AT_A_TIME}
  for _, member in ipairs(call('ZRANGEBYSCORE', N.due, '-inf', digits(now), 'LIMIT', 0, atATime)) do F.comeDue(member) end
  for _, name in ipairs(call('ZRANGEBYSCORE', N.leases, '-inf', digits(now), 'LIMIT', 0, atATime)) do
    local k = F.lookAtKey(name)
    if k and k.fence > 0 and k.deadline <= now then
      F.noteLost(name, k)
      F.expireLease(name, k)
    else
      C.leases[name] = false
    end
  end
end

-- After everything was written: when to look again.
function F.nextDue()
  if not S.looked then return end
  S.dueFrom = NEVER
  for _, set in ipairs({ N.due, N.leases }) do
    local first = call('ZRANGE', set, 0, 0, 'WITHSCORES')
    if first[2] then S.dueFrom = math.min(S.dueFrom, tonumber(first[2])) end
  end
end

-- A lease without an item. Its deadline may have passed without anybody having noticed yet.
function O.hold(at)
  local name, waits = ARGV[at], ARGV[at + 3] == '1'
  local k = F.findKey(name) or F.makeKey(name)
  if k.fence > 0 then
    if k.deadline > now then
      if waits and not k.wanted then
        k.wanted = true
        F.save(name)
      end
      return '0'
    end
    F.expireLease(name, k)
  end
  F.withdraw(name, k)
  if k.kept > 0 then F.never('K' .. name) end
  -- Others may wait to hold it too, and say so again when they hear of this.
  if k.wanted then S.freed[#S.freed + 1] = name end
  k.kept, k.wanted, k.held = 0, false, true
  F.beginLease(name, k, ARGV[at + 1], tonumber(ARGV[at + 2]))
  return digits(k.fence)
end

-- Moves a lease that is good. Returns how it is.
function F.renew(name, k, at, isNew)
  local progress = ARGV[at + 1]
  if isNew ~= nil then F.uncover(k) end
  if progress ~= '' then k.progress = tonumber(progress) end
  F.extend(name, k, tonumber(ARGV[at]))
  return k.cancel and 2 or 1
end

-- The reply to a call was lost, and with it whatever it was given: nobody knows of those leases, so they go back as if never given.
function O.recall(at)
  F.flush()
  for _, name in ipairs(call('ZRANGE', N.leases, 0, -1)) do
    local k = F.lookAtKey(name)
    if k and k.fence > 0 and k.asked == ARGV[at] then
      if not k.held and not k.cancel then k.attempt = k.attempt - 1 end
      F.endLease(name, k)
    end
  end
  return 1
end

function O.unwant(at)
  local k = F.findKey(ARGV[at])
  if k and k.wanted then
    -- Others who wait for the same key say so again when they hear of it.
    S.freed[#S.freed + 1] = ARGV[at]
    F.keepNoMore(ARGV[at], k)
  end
  return 1
end
`;
