/**
 * The first part of the program that runs inside the server: what is kept of a queue, read when it is needed and written once, at
 * the end. Every key of the store that the program touches is declared, in this order, and all begin with the hash tag of the queue, so
 * that in a cluster they share a slot, and a slot that is being moved is refused as a whole:
 *
 *   {prefix:queue}   hash        `levels` as JSON; `state`: counts and the last number
 *   …:keys           hash        key → its record               …:names     sorted set  the names of those keys, for pages
 *   …:items          hash        number of an item → the item   …:links     hash        number → number of the one behind it in line
 *   …:leases         sorted set  leased keys by their deadline  …:due       sorted set  what else comes due: B + key (back-off),
 *   …:delayed        sorted set  key + NUL + number                         K + key (kept for a hold), D and Y + number (delayed, yielded)
 *   …:receipts       hash        id → what is remembered        …:expiries  sorted set  ids by when they are forgotten
 *   …:failures       hash        number → why and when it died  …:dead      sorted set  dead letters by when they died
 *   …:ready:LEVEL    sorted set  ready keys by their place
 *
 * Times are microseconds of the server's clock. Numbers (of items, places and fences) only rise: each is greater than the one before, and
 * not less than the time, so that they rise also where the counter was lost.
 */
export const STORE: string = String.raw`
local Q, KEYS_OF, NAMES, ITEMS, LINKS, LEASED_KEYS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local DUE, DELAYED, RECEIPTS, EXPIRIES, FAILURES, DEAD = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local BEFORE_READY = 12
local call, pack, unpackAll = redis.call, cmsgpack.pack, cmsgpack.unpack
local IDLE, READY, LEASED, BLOCKED, PARKED = 0, 1, 2, 3, 4
local NEVER = 9000000000000000
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local saved = call('HMGET', Q, 'levels', 'state')
if not saved[1] then
  if ARGV[1] == '' then return {} end
  saved[1] = ARGV[1]
  call('HSET', Q, 'levels', ARGV[1])
end

local number, dueFrom, forgetFrom, sleepers, watchers, paused, delayed, running, dead, choices, waiting, ready
if saved[2] then
  number, dueFrom, forgetFrom, sleepers, watchers, paused, delayed, running, dead, choices, waiting, ready =
    unpackAll(saved[2])
else
  number, dueFrom, forgetFrom, sleepers, watchers, paused, delayed, running, dead, choices =
    0, NEVER, NEVER, 0, 0, false, 0, 0, 0, 3
  waiting, ready = {}, {}
  for level = 1, #cjson.decode(saved[1]) do waiting[level], ready[level] = 0, 0 end
end
local levels = #waiting
local dueBefore = dueFrom
if number < now then number = now end

local changed = false
local opened = 0
local ended, lost, freed, released = {}, {}, {}, {}

-- Numbers are written out here: left to the server or to Lua, some versions would write 1.79e+15.
local function digits(value) return string.format('%.0f', value) end
local function text(value) return type(value) == 'number' and digits(value) or value end

local function nextNumber()
  changed = true
  number = number + 1
  return number
end

-- Many arguments at a time, but no more than the stack takes.
local function bulk(command, key, arguments)
  for first = 1, #arguments, 2000 do
    call(command, key, unpack(arguments, first, math.min(first + 1999, #arguments)))
  end
end

local keys, dirty = {}, {}

local function readKey(record)
  local head, level, place, attempt, due, state, fence, deadline, worker, since, held, wanted, kept, cancel, progress,
    waits, delays, isPaused, lanes, gaps, id, keep, submitted, base, streak = unpackAll(record)
  return {
    head = head, level = level, place = place, attempt = attempt, due = due, state = state, fence = fence,
    deadline = deadline, worker = worker, since = since, held = held, wanted = wanted, kept = kept, cancel = cancel,
    progress = progress, waits = waits, delays = delays, paused = isPaused, lanes = lanes, gaps = gaps, id = id,
    keep = keep, submitted = submitted, base = base, streak = streak, stored = true, listed = state == READY and level or 0,
  }
end

local function writeKey(k)
  return pack(k.head, k.level, k.place, k.attempt, k.due, k.state, k.fence, k.deadline, k.worker, k.since, k.held,
    k.wanted, k.kept, k.cancel, k.progress, k.waits, k.delays, k.paused, k.lanes, k.gaps, k.id, k.keep, k.submitted,
    k.base, k.streak)
end

local function findKey(name)
  local k = keys[name]
  if k == nil then
    local record = call('HGET', KEYS_OF, name)
    k = record and readKey(record) or false
    keys[name] = k
  end
  return k
end

local function makeKey(name)
  local k = {
    head = 0, level = 1, place = 0, attempt = 0, due = 0, state = IDLE, fence = 0, deadline = 0, worker = '', since = 0,
    held = false, wanted = false, kept = 0, cancel = false, progress = false, waits = 0, delays = 0, paused = false,
    lanes = false, gaps = false, id = '', keep = 0, submitted = 0, base = 0, streak = 0, stored = false, listed = 0,
  }
  keys[name] = k
  return k
end

local function save(name)
  dirty[name] = true
  changed = true
end

-- A key is worth a record only while it has an item, a lease, a pause, or is kept for a hold.
local function isEmpty(k)
  return k.head == 0 and k.fence == 0 and k.delays == 0 and k.kept == 0 and not k.paused
end

local fresh = {}

local function packedItem(seq)
  local item = fresh[seq]
  if item == nil then item = call('HGET', ITEMS, digits(seq)) end
  return item
end

local function readItem(record)
  local key, level, id, keep, submitted, attempt, due, kind, form, headers, body = unpackAll(record)
  return {
    key = key, level = level, id = id, keep = keep, submitted = submitted, attempt = attempt, due = due, kind = kind,
    form = form, headers = headers, body = body,
  }
end

local function findItem(seq)
  local record = packedItem(seq)
  return record and readItem(record)
end

local function saveItem(seq, i)
  fresh[seq] = pack(i.key, i.level, i.id, i.keep, i.submitted, i.attempt, i.due, i.kind, i.form, i.headers, i.body)
end

local function dropItem(seq)
  fresh[seq] = false
end

local dueChanges, leaseChanges = {}, {}

local function later(member, at)
  dueChanges[member] = at
  if at < dueFrom then dueFrom = at end
  changed = true
end

local function never(member) dueChanges[member] = false end

local readyChanges = {}
for level = 1, levels do readyChanges[level] = {} end

local function toReady(name, k)
  k.state = READY
  readyChanges[k.level][name] = k.place
  ready[k.level] = ready[k.level] + 1
  opened = opened + 1
end

local function outOfReady(name, k)
  -- One that was never written need not be removed.
  if k.listed == k.level then readyChanges[k.level][name] = false else readyChanges[k.level][name] = nil end
  ready[k.level] = ready[k.level] - 1
end

local function writeChanges(key, changes)
  local add, drop = {}, {}
  for member, score in pairs(changes) do
    if score then
      add[#add + 1] = digits(score)
      add[#add + 1] = text(member)
    else
      drop[#drop + 1] = text(member)
    end
    changes[member] = nil
  end
  bulk('ZREM', key, drop)
  bulk('ZADD', key, add)
end

local function flushReady()
  for level = 1, levels do
    for name, place in pairs(readyChanges[level]) do
      local k = keys[name]
      if place then k.listed = level elseif k.listed == level then k.listed = 0 end
    end
    writeChanges(KEYS[BEFORE_READY + level], readyChanges[level])
  end
end

local links, receipts, failures, deadChanges, delayedChanges = {}, {}, {}, {}, {}

-- By field: what to write, or false for what to remove.
local function writeFields(key, fields)
  local put, drop = {}, {}
  for field, value in pairs(fields) do
    if value then
      put[#put + 1] = text(field)
      put[#put + 1] = text(value)
    else
      drop[#drop + 1] = text(field)
    end
    fields[field] = nil
  end
  bulk('HDEL', key, drop)
  bulk('HSET', key, put)
end

local function flushKeys()
  local put, names, forget = {}, {}, {}
  for name in pairs(dirty) do
    local k = keys[name]
    if not isEmpty(k) then
      put[#put + 1] = name
      put[#put + 1] = writeKey(k)
      if not k.stored then
        names[#names + 1] = '0'
        names[#names + 1] = name
        k.stored = true
      end
    else
      if k.stored then forget[#forget + 1] = name end
      keys[name] = nil
    end
    dirty[name] = nil
  end
  bulk('HDEL', KEYS_OF, forget)
  bulk('ZREM', NAMES, forget)
  bulk('HSET', KEYS_OF, put)
  bulk('ZADD', NAMES, names)
end

local expiryChanges = {}

local function flush()
  writeFields(ITEMS, fresh)
  writeFields(LINKS, links)
  flushReady()
  writeChanges(LEASED_KEYS, leaseChanges)
  writeChanges(DUE, dueChanges)
  writeChanges(DELAYED, delayedChanges)
  writeFields(RECEIPTS, receipts)
  writeChanges(EXPIRIES, expiryChanges)
  writeFields(FAILURES, failures)
  writeChanges(DEAD, deadChanges)
  flushKeys()
end
`;
