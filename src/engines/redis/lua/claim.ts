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
      if k and not k.damaged then
        k.listed, k.state, k.streak = 0, 'idle', now
        names[#names + 1] = popped[index]
      end
    end
    S.ready[level] = #popped == 0 and 0 or S.ready[level] - #popped / 2
  end
end

-- What a worker gets to see of an item, then what the program wants to know of it. Only the first of a run comes with its key and the fence.
function F.show(name, fence, seq, record, attempts)
  local _, level, id, keep, submitted, attempt, _, kind, form, headers, body, tried, losses = unpackAll(record)
  local text = table.concat({ name, fence, F.idOf(seq, id), level, kind, form, digits(submitted), attempt + attempts,
    headers, losses ~= 0 and losses or nil }, '\0')
  return text, body, id, keep, submitted, attempt, tried
end

function F.grant(claim, names)
  local numbers, grants = {}, {}
  for index, name in ipairs(names) do numbers[index] = keys[name].head end
  local records = F.packedItems(numbers)
  -- For what stands behind others in one reply: so many bytes, of which each item takes 2,000 for the time that it costs.
  local room = 1000000
  for index, name in ipairs(names) do
    local k = keys[name]
    F.beginLease(name, k, claim.worker, claim.lease)
    k.attempt = k.attempt + 1
    local text, body, id, keep, submitted, attempt, tried = F.show(name, digits(k.fence), k.head, records[index], k.attempt)
    k.id, k.keep, k.submitted, k.base, k.tried = id, keep, submitted, attempt, tried ~= nil and tried ~= ''
    grants[#grants + 1], grants[#grants + 2] = text, body
    k.waits = k.waits - 1
    S.running = S.running + 1
    S.waiting[k.level] = S.waiting[k.level] - 1
    -- A run takes along nothing that stands behind an item that was tried before, or after a lease over several was lost.
    if claim.items > 1 and attempt + k.attempt == 1 and k.alone == 0 then room = F.cover(k, claim.items, room, grants) end
  end
  return grants
end

function O.claim(at)
  local wish = {
    worker = ARGV[at], max = tonumber(ARGV[at + 1]), lease = tonumber(ARGV[at + 2]), patience = tonumber(ARGV[at + 3]),
    items = tonumber(ARGV[at + 4]),
  }
  local names = {}
  if not S.paused then
    if #S.released > 0 then F.goOn(wish, names) end
    if #names < wish.max then F.takeReady(wish, names) end
  end
  if #names > 0 then return F.grant(wish, names), at + 5 end
  -- So long it is taken for granted that a claim which found nothing still waits.
  S.sleepers, S.changed = now + 15000000, true
  return {}, at + 5
end
`;
