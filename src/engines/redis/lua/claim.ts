/** Hands out ready keys, most urgent level first, then the key that became ready first. */
export const CLAIM: string = String.raw`
-- The level to take from, and how many of it. After three choices that were strict, one may go to a level that has waited too long; as in
-- domain/level.ts.
function F.choose(patience, wanted)
  local first, impatient
  local longest = patience
  for level = 1, S.levels do
    if S.ready[level] > 0 then
      if not first then
        first = level
      else
        local front = call('ZRANGE', KEYS[N.beforeReady + level], 0, 0, 'WITHSCORES')
        -- A place is not less than the time at which it was taken.
        if front[2] and now - front[2] > longest then longest, impatient = now - front[2], level end
      end
    end
  end
  if not impatient then
    S.choices = 3
    return first, wanted
  end
  if S.choices > 0 then
    S.choices = S.choices - 1
    return first, 1
  end
  S.choices = 3
  return impatient, 1
end

-- A worker that has just finished an item of a key goes on with the key's next one, if nothing more urgent is ready and it has not had
-- the key for long: 25 milliseconds are hardly felt by those that wait. To hand the key to another worker instead would write two keys.
function F.goOn(claim, names)
  local mostUrgent = 1
  while mostUrgent < S.levels and S.ready[mostUrgent] == 0 do mostUrgent = mostUrgent + 1 end
  for _, one in ipairs(S.released) do
    if #names == claim.max then return end
    local k = keys[one.name]
    if one.worker == claim.worker and k and k.state == 'ready' and k.level <= mostUrgent
      and now - k.streak <= 25000 then
      F.outOfReady(one.name, k)
      k.state = 'idle'
      names[#names + 1] = one.name
    end
  end
end

function F.takeReady(claim, names)
  F.flushReady()
  while #names < claim.max do
    local level, wanted = F.choose(claim.patience, claim.max - #names)
    if not level then return end
    local popped = call('ZPOPMIN', KEYS[N.beforeReady + level], wanted)
    local missing = {}
    for index = 1, #popped, 2 do
      if keys[popped[index]] == nil then missing[#missing + 1] = popped[index] end
    end
    if #missing > 0 then
      for index, record in ipairs(call('HMGET', N.keys, unpack(missing))) do
        keys[missing[index]] = record and F.readKey(record) or false
      end
    end
    for index = 1, #popped, 2 do
      local k = keys[popped[index]]
      k.listed, k.state, k.streak = 0, 'idle', now
      names[#names + 1] = popped[index]
    end
    S.ready[level] = #popped == 0 and 0 or S.ready[level] - #popped / 2
  end
end

function F.grant(claim, names)
  local wanted, records, grants = {}, {}, {}
  for _, name in ipairs(names) do
    local seq = keys[name].head
    if C.items[seq] then records[seq] = C.items[seq] else wanted[#wanted + 1] = seq end
  end
  if #wanted > 0 then
    for index, record in ipairs(call('HMGET', N.items, unpack(wanted))) do
      records[wanted[index]] = record
    end
  end
  for index, name in ipairs(names) do
    local k = keys[name]
    if not records[k.head] then error({ err = 'BATONBROKEN item ' .. k.head .. ' is gone' }) end
    local _, level, id, keep, submitted, attempt, _, kind, form, headers, body = unpackAll(records[k.head])
    F.beginLease(name, k, claim.worker, claim.lease)
    k.attempt = k.attempt + 1
    k.id, k.keep, k.submitted, k.base = id, keep, submitted, attempt
    k.waits = k.waits - 1
    S.running = S.running + 1
    S.waiting[k.level] = S.waiting[k.level] - 1
    grants[index * 2 - 1] = table.concat({ name, digits(k.fence), F.idOf(k.head, id), level, kind, form,
      digits(submitted), attempt + k.attempt, headers }, '\0')
    grants[index * 2] = body
  end
  return grants
end

function O.claim(at)
  local wish = {
    worker = ARGV[at], max = tonumber(ARGV[at + 1]), lease = tonumber(ARGV[at + 2]), patience = tonumber(ARGV[at + 3]),
  }
  local names = {}
  if not S.paused then
    if #S.released > 0 then F.goOn(wish, names) end
    if #names < wish.max then F.takeReady(wish, names) end
  end
  if #names > 0 then return F.grant(wish, names), at + 4 end
  -- So long it is taken for granted that a claim which found nothing still waits.
  S.sleepers, S.changed = now + 15000000, true
  return {}, at + 4
end
`;
