/** Leases: how they begin, are compared, moved and ended, and what happens because time passes. */
export const LEASES: string = String.raw`
-- How long a key is kept for whoever waits to hold it: they hear of it in milliseconds, if they are still there.
local KEPT_US = 250000
-- So many of a kind in one call; the rest in the next, so that others get their turn.
local AT_A_TIME = 200

local function beginLease(name, k, worker, leaseUs)
  k.state, k.fence, k.deadline, k.worker, k.since = LEASED, nextNumber(), now + leaseUs, worker, now
  k.progress, k.cancel = false, false
  leaseChanges[name] = k.deadline
  if k.deadline < dueFrom then dueFrom = k.deadline end
  save(name)
end

-- The lease is over: if somebody waits to hold the key, it is kept for them.
local function letGo(name, k)
  leaseChanges[name] = false
  k.fence, k.deadline, k.worker, k.progress, k.held, k.state = 0, 0, '', false, false, IDLE
  if k.wanted then
    k.kept = now + KEPT_US
    later('K' .. name, k.kept)
    freed[#freed + 1] = name
  end
  save(name)
end

-- The lease is over, and its item, if it had one, waits again where it stood.
local function endLease(name, k)
  local held = k.held
  letGo(name, k)
  if held then return resume(name, k) end
  running = running - 1
  if k.cancel then
    endHead(name, k, 'cancelled')
    return promote(name, k)
  end
  waiting[k.level] = waiting[k.level] + 1
  k.waits = k.waits + 1
  resume(name, k)
end

-- The one place where a lease is compared: same fence, not run out (G2).
local function current(name, fence)
  local k = findKey(name)
  if k and k.fence > 0 and k.fence == fence and k.deadline > now then return k end
end

-- Nobody came for a key that was kept for a hold, or they gave up.
local function keepNoMore(name, k)
  never('K' .. name)
  k.kept, k.wanted = 0, false
  if k.state == PARKED and not k.paused then open(name, k) end
  save(name)
end

local function comeDue(member)
  local mark, rest = string.sub(member, 1, 1), string.sub(member, 2)
  never(member)
  if mark == 'B' or mark == 'K' then
    local k = findKey(rest)
    if not k then return end
    if mark == 'K' then return keepNoMore(rest, k) end
    k.state, k.place, k.due = IDLE, nextNumber(), 0
    return open(rest, k)
  end
  local seq = tonumber(rest)
  local item = findItem(seq)
  local k = item and findKey(item.key)
  if not k then return end
  undelay(item.key, k, seq)
  arrive(item.key, k, seq, item.level, mark == 'Y')
end

local looked = false
-- Everything that happens because time passes: delayed items arrive, back-offs end, leases run out.
local function advance()
  if now < dueFrom then return end
  looked, changed = true, true
  for _, member in ipairs(call('ZRANGEBYSCORE', DUE, '-inf', digits(now), 'LIMIT', 0, AT_A_TIME)) do comeDue(member) end
  for _, name in ipairs(call('ZRANGEBYSCORE', LEASED_KEYS, '-inf', digits(now), 'LIMIT', 0, AT_A_TIME)) do
    local k = findKey(name)
    if k and k.fence > 0 and k.deadline <= now then
      lost[#lost + 1] = name
      lost[#lost + 1] = digits(k.fence)
      endLease(name, k)
    else
      leaseChanges[name] = false
    end
  end
end

-- After everything was written: when to look again.
local function nextDue()
  if not looked then return end
  dueFrom = NEVER
  for _, set in ipairs({ DUE, LEASED_KEYS }) do
    local first = call('ZRANGE', set, 0, 0, 'WITHSCORES')
    if first[2] then dueFrom = math.min(dueFrom, tonumber(first[2])) end
  end
end

-- A lease without an item. Its deadline may have passed without anybody having noticed yet.
local function hold(name, worker, leaseUs, waits)
  local k = findKey(name) or makeKey(name)
  if k.fence > 0 then
    if k.deadline > now then
      if waits and not k.wanted then
        k.wanted = true
        save(name)
      end
      return '0'
    end
    endLease(name, k)
  end
  withdraw(name, k)
  if k.kept > 0 then never('K' .. name) end
  -- Others may wait to hold it too, and say so again when they hear of this.
  if k.wanted then freed[#freed + 1] = name end
  k.kept, k.wanted, k.held = 0, false, true
  beginLease(name, k, worker, leaseUs)
  return digits(k.fence)
end

local function unwant(name)
  local k = findKey(name)
  if not (k and k.wanted) then return end
  -- Others who wait for the same key say so again when they hear of it.
  freed[#freed + 1] = name
  keepNoMore(name, k)
end

local function renew(name, fence, leaseUs, progress)
  local k = current(name, fence)
  if not k then return 0 end
  k.deadline = now + leaseUs
  leaseChanges[name] = k.deadline
  if k.deadline < dueFrom then dueFrom = k.deadline end
  if progress ~= '' then k.progress = tonumber(progress) end
  save(name)
  return k.cancel and 2 or 1
end
`;
