import { RUN_BYTES, WAITS_US } from "./bounds.ts";

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

function F.takeReady(claim)
  local names = {}
  F.flushReady()
  while #names < claim.max do
    local level, wanted = F.choose(claim.patience, claim.max - #names)
    if not level then break end
    local set = KEYS[N.beforeReady + level]
    -- Not ZPOPMIN: to write out the places, which nobody needs, takes it longer than all else.
    local first = call('ZRANGE', set, 0, wanted - 1)
    F.bulk('ZREM', set, first)
    F.findKeys(first)
    for _, name in ipairs(first) do
      local k = keys[name]
      if k and k.state ~= 'damaged' then
        k.listed, k.state = 0, 'idle'
        names[#names + 1] = name
      end
    end
    S.ready[level] = #first == 0 and 0 or S.ready[level] - #first
  end
  return names
end

-- What a worker gets to see of an item, then what the program wants to know of it. Only the first of a run comes with its key and the fence.
function F.show(name, fence, seq, record, attempts)
  local _, level, id, keep, submitted, attempt, _, kind, form, headers, body, tried, losses = unpackAll(record)
  local text = name .. '\0' .. fence .. '\0' .. F.idOf(seq, id) .. '\0' .. level .. '\0' .. kind .. '\0' .. form .. '\0' ..
    digits(submitted) .. '\0' .. attempt + attempts .. '\0' .. headers
  if losses and losses > 0 then text = text .. '\0' .. losses end
  return text, body, id, keep, submitted, attempt, tried
end

function F.grant(claim, names)
  local numbers, grants = {}, {}
  for index, name in ipairs(names) do
    local k = keys[name]
    numbers[index] = k.head
  end
  local records = F.packedItems(numbers)
  local room = ${RUN_BYTES}
  for index, name in ipairs(names) do
    local k = keys[name]
    F.beginLease(name, k, claim.worker, claim.lease)
    k.attempt = k.attempt + 1
    local text, body, id, keep, submitted, attempt, tried = F.show(name, digits(k.fence), k.head, records[index], k.attempt)
    k.id, k.keep, k.submitted, k.base, k.tried = id, keep, submitted, attempt, tried ~= nil and tried ~= ''
    grants[#grants + 1], grants[#grants + 2] = text, body
    F.count(k, k.level, -1)
    S.running = S.running + 1
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
  local names = S.paused and {} or F.takeReady(wish)
  if #names > 0 then return F.grant(wish, names) end
  S.sleepers, S.changed = now + ${WAITS_US}, true
  return {}
end
`;
