/** Hands out ready keys, most urgent level first, then the key that became ready first. */
export const CLAIM: string = String.raw`
-- How long a worker may go on with one key while others are ready: too short to be felt by those that wait.
local LONGEST_STREAK_US = 10000
-- After this many choices that were strict, one may go to a level that has waited too long; as in domain/level.ts.
local STRICT_CHOICES = 3
-- How long it is taken for granted that a claim which found nothing still waits.
local SLEEP_US = 15000000

-- The level to take from, and how many of it.
local function choose(patience, wanted)
  local first, impatient
  local longest = patience
  for level = 1, levels do
    if ready[level] > 0 then
      if not first then
        first = level
      else
        local front = call('ZRANGE', KEYS[BEFORE_READY + level], 0, 0, 'WITHSCORES')
        -- A place is not less than the time at which it was taken.
        if front[2] and now - front[2] > longest then longest, impatient = now - front[2], level end
      end
    end
  end
  if not impatient then
    choices = STRICT_CHOICES
    return first, wanted
  end
  if choices > 0 then
    choices = choices - 1
    return first, 1
  end
  choices = STRICT_CHOICES
  return impatient, 1
end

-- A worker that has just finished an item of a key goes on with the key's next one, if nothing more urgent is ready and it has not had
-- the key for long. To hand the key to another worker instead would write two keys.
local function goOn(claim, names)
  local mostUrgent = 1
  while mostUrgent < levels and ready[mostUrgent] == 0 do mostUrgent = mostUrgent + 1 end
  for _, one in ipairs(released) do
    if #names == claim.max then return end
    local k = keys[one.name]
    if one.worker == claim.worker and k and k.state == READY and k.level <= mostUrgent
      and now - k.streak <= LONGEST_STREAK_US then
      outOfReady(one.name, k)
      k.state = IDLE
      names[#names + 1] = one.name
    end
  end
end

local function takeReady(claim, names)
  flushReady()
  while #names < claim.max do
    local level, wanted = choose(claim.patience, claim.max - #names)
    if not level then return end
    local popped = call('ZPOPMIN', KEYS[BEFORE_READY + level], wanted)
    local missing = {}
    for index = 1, #popped, 2 do
      if keys[popped[index]] == nil then missing[#missing + 1] = popped[index] end
    end
    if #missing > 0 then
      for index, record in ipairs(call('HMGET', KEYS_OF, unpack(missing))) do
        keys[missing[index]] = record and readKey(record) or false
      end
    end
    for index = 1, #popped, 2 do
      local k = keys[popped[index]]
      k.listed, k.state, k.streak = 0, IDLE, now
      names[#names + 1] = popped[index]
    end
    ready[level] = #popped == 0 and 0 or ready[level] - #popped / 2
  end
end

local function grant(claim, names)
  local wanted, records, grants = {}, {}, {}
  for _, name in ipairs(names) do
    local seq = keys[name].head
    if fresh[seq] then records[seq] = fresh[seq] else wanted[#wanted + 1] = digits(seq) end
  end
  if #wanted > 0 then
    for index, record in ipairs(call('HMGET', ITEMS, unpack(wanted))) do
      records[tonumber(wanted[index])] = record
    end
  end
  for index, name in ipairs(names) do
    local k = keys[name]
    local _, level, id, keep, submitted, attempt, _, kind, form, headers, body = unpackAll(records[k.head])
    beginLease(name, k, claim.worker, claim.lease)
    k.attempt = k.attempt + 1
    k.id, k.keep, k.submitted, k.base = id, keep, submitted, attempt
    k.waits = k.waits - 1
    running = running + 1
    waiting[k.level] = waiting[k.level] - 1
    grants[index * 2 - 1] = table.concat({ name, digits(k.fence), idOf(k.head, id), level, kind, form,
      digits(submitted), attempt + k.attempt, headers }, '\0')
    grants[index * 2] = body
  end
  return grants
end

local function claim(at)
  local wish = {
    worker = ARGV[at], max = tonumber(ARGV[at + 1]), lease = tonumber(ARGV[at + 2]), patience = tonumber(ARGV[at + 3]),
  }
  local names = {}
  if not paused then
    if #released > 0 then goOn(wish, names) end
    if #names < wish.max then takeReady(wish, names) end
  end
  if #names > 0 then return grant(wish, names) end
  sleepers, changed = now + SLEEP_US, true
  return {}
end
`;
