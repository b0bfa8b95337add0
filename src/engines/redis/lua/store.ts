import { MOST_ARGUMENTS } from "./bounds.ts";

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
 * Times are microseconds of the server's clock. The number of an item is kept as text, because to write it out takes as long as to write a field. Numbers (of items, places and fences) only rise: each is greater than the one before, and
 * not less than the time, so that they rise also where the counter was lost.
 */
/**
 * What is known of a key, in the order of its record; those around it are not written. The programs say `k.head`; what runs has its place in a list
 * instead, which is read and made in a third of the time.
 */
export const KEY_FIELDS: readonly string[] =
  `isOurs head level place attempt due state fence wanted kept waits delays paused lanes gaps deadline worker since held cancel
  progress id keep submitted base streak asked tried covered alone cancels remembered stored listed`.split(/\s+/);

export const STORE: string = String.raw`
-- F: the functions of this program, O: those that can be asked for, N: the names of the store's keys, S: the state of the queue, C: changes, by what they change. Few
-- variables in tables, because every function of a program is made anew for each call, at a price for each variable that it shares.
local F, O, S = {}, {}, {}
local N = {
  queue = KEYS[1], keys = KEYS[2], names = KEYS[3], items = KEYS[4], links = KEYS[5], leases = KEYS[6], due = KEYS[7],
  delayed = KEYS[8], receipts = KEYS[9], expiries = KEYS[10], failures = KEYS[11], dead = KEYS[12], beforeReady = 12,
}
local C = {
  keys = {}, items = {}, links = {}, leases = {}, due = {}, delayed = {}, receipts = {}, expiries = {}, failures = {},
  dead = {}, ready = {},
}
local keys = {}
local call, pack, unpackAll = redis.call, cmsgpack.pack, cmsgpack.unpack
local NEVER = 9000000000000000
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
-- Numbers are written out here: left to the server or to Lua, some versions would write 1.79e+15.
local format = string.format
local function digits(value) return format('%d', value) end

local saved = call('HMGET', N.queue, 'levels', 'state')
-- Somebody has deleted the queue, and perhaps made it anew with other levels.
if saved[1] ~= ARGV[1] then error({ err = 'BATONMISSING' }) end
if saved[2] then
  S.number, S.dueFrom, S.forgetFrom, S.sleepers, S.watchers, S.paused, S.delayed, S.running, S.dead, S.choices,
    S.waiting, S.ready = unpackAll(saved[2])
else
  S.number, S.dueFrom, S.forgetFrom, S.sleepers, S.watchers, S.paused, S.delayed, S.running, S.dead, S.choices =
    0, NEVER, NEVER, 0, 0, false, 0, 0, 0, 3
  S.waiting, S.ready = {}, {}
  for level = 1, #cjson.decode(saved[1]) do S.waiting[level], S.ready[level] = 0, 0 end
end
S.written, S.levels, S.dueBefore, S.changed, S.opened = saved[1], #S.waiting, S.dueFrom, false, 0
S.ended, S.lost, S.freed = {}, {}, {}
if S.number < now then S.number = now end
for level = 1, S.levels do C.ready[level] = {} end

function F.nextNumber()
  S.changed = true
  S.number = S.number + 1
  return S.number
end

function F.bulk(command, key, arguments)
  for first = 1, #arguments, ${MOST_ARGUMENTS} do
    call(command, key, unpack(arguments, first, math.min(first + ${MOST_ARGUMENTS - 1}, #arguments)))
  end
end

F.new = { true, '', 1, 0, 0, 0, 'idle', 0, false, 0, 0, 0, false, false, false, 0, '', 0, false, false, false, '', 0, 0, 0, 0, '',
  false, 1, 0, false, false, false, 0 }
F.withoutLease = pack(unpack(F.new, FIELD.deadline, FIELD.listed))

-- What belongs to a lease stands behind the rest, and only while there is one; then what runs of several items, or their loss, left.
function F.readKey(record)
  local k = { pcall(unpackAll, record .. F.withoutLease) }
  -- Somebody else has written over it. Nobody can work on this key, and the others go on.
  if type(k.head) ~= 'string' or type(k.level) ~= 'number' or type(k.state) ~= 'string' or type(k.fence) ~= 'number'
    or type(k.waits) ~= 'number' or type(k.delays) ~= 'number' then
    k = { unpack(F.new) }
    k.state = 'damaged'
    return k
  end
  local last = #k - #F.new + FIELD.gaps
  if last > FIELD.gaps then
    for index = last + 1, FIELD.remembered do k[index] = F.new[index] end
  end
  k.stored, k.listed = true, k.state == 'ready' and k.level or 0
  return k
end

function F.writeKey(k)
  local last = FIELD.gaps
  if k.fence > 0 then last = FIELD.tried end
  if k.covered > 1 or k.alone > 0 then last = FIELD.remembered end
  return pack(unpack(k, FIELD.head, last))
end

-- Many at once: to look one up alone costs twice as much.
function F.findKeys(names)
  local missing = {}
  for _, name in ipairs(names) do
    if keys[name] == nil then missing[#missing + 1] = name end
  end
  for first = 1, #missing, ${MOST_ARGUMENTS} do
    local records = call('HMGET', N.keys, unpack(missing, first, math.min(first + ${MOST_ARGUMENTS - 1}, #missing)))
    for index, record in ipairs(records) do keys[missing[first + index - 1]] = record and F.readKey(record) or false end
  end
end

-- For those who can do without one that is damaged.
function F.lookAtKey(name)
  if keys[name] == nil then F.findKeys({ name }) end
  return keys[name]
end

function F.findKey(name)
  local k = F.lookAtKey(name)
  -- What was written before, for a question in the same run, must not be asked for again.
  if k and k.state == 'damaged' then error({ err = (S.flushed and 'BATONBROKEN key ' or 'BATONDAMAGED ') .. name }) end
  return k
end

function F.makeKey(name)
  local k = { unpack(F.new) }
  keys[name] = k
  return k
end

function F.save(name)
  C.keys[name] = true
  S.changed = true
end

-- A key is worth a record only while it has an item, a lease, a pause, or is kept for a hold.
function F.isEmpty(k)
  return k.head == '' and k.fence == 0 and k.delays == 0 and k.kept == 0 and not k.paused
end

function F.packedItem(seq)
  local item = C.items[seq]
  if item == nil then item = call('HGET', N.items, seq) end
  return item
end

-- In the order of their numbers, which are few enough for one call.
function F.packedItems(numbers)
  local records, wanted, places = {}, {}, {}
  for index, seq in ipairs(numbers) do
    records[index] = C.items[seq]
    if not records[index] then wanted[#wanted + 1], places[#places + 1] = seq, index end
  end
  if #wanted == 0 then return records end
  for index, record in ipairs(call('HMGET', N.items, unpack(wanted))) do
    if not record then error({ err = 'BATONBROKEN item ' .. wanted[index] .. ' is gone' }) end
    records[places[index]] = record
  end
  return records
end

function F.readItem(record)
  local key, level, id, keep, submitted, attempt, due, kind, form, headers, body, tried, losses = unpackAll(record)
  return {
    key = key, level = level, id = id, keep = keep, submitted = submitted, attempt = attempt, due = due, kind = kind,
    form = form, headers = headers, body = body, tried = tried or '', losses = losses or 0,
  }
end

function F.findItem(seq)
  local record = F.packedItem(seq)
  return record and F.readItem(record)
end

function F.saveItem(seq, i)
  C.items[seq] = pack(i.key, i.level, i.id, i.keep, i.submitted, i.attempt, i.due, i.kind, i.form, i.headers, i.body,
    i.tried, i.losses)
end

function F.dropItem(seq) C.items[seq] = false end

-- Counts an item in or out of the line of its level.
function F.count(k, level, change)
  k.waits, S.waiting[level] = k.waits + change, S.waiting[level] + change
end

function F.noteLost(name, k)
  S.lost[#S.lost + 1], S.lost[#S.lost + 2] = name, digits(k.fence)
end

function F.later(member, at)
  C.due[member] = at
  if at < S.dueFrom then S.dueFrom = at end
  S.changed = true
end

function F.never(member) C.due[member] = false end

function F.toReady(name, k)
  k.state = 'ready'
  C.ready[k.level][name] = k.place
  S.ready[k.level] = S.ready[k.level] + 1
  S.opened = S.opened + 1
end

function F.outOfReady(name, k)
  -- One that was never written need not be removed.
  if k.listed == k.level then C.ready[k.level][name] = false else C.ready[k.level][name] = nil end
  S.ready[k.level] = S.ready[k.level] - 1
end

-- By field or member: what to write, or false for what to remove.
function F.write(put, drop, key, changes)
  local new, gone = {}, {}
  for member, value in pairs(changes) do
    if not value then gone[#gone + 1] = member
    elseif put == 'ZADD' then new[#new + 1], new[#new + 2] = digits(value), member
    else new[#new + 1], new[#new + 2] = member, value end
    changes[member] = nil
  end
  F.bulk(drop, key, gone)
  F.bulk(put, key, new)
end

function F.writeScores(key, scores) F.write('ZADD', 'ZREM', key, scores) end

function F.flushReady()
  for level = 1, S.levels do
    for name, place in pairs(C.ready[level]) do
      local k = keys[name]
      if place then k.listed = level elseif k.listed == level then k.listed = 0 end
    end
    F.writeScores(KEYS[N.beforeReady + level], C.ready[level])
  end
end

function F.flushKeys()
  local put, names, forget = {}, {}, {}
  for name in pairs(C.keys) do
    local k = keys[name]
    if not F.isEmpty(k) then
      put[#put + 1] = name
      put[#put + 1] = F.writeKey(k)
      if not k.stored then
        names[#names + 1] = '0'
        names[#names + 1] = name
        k.stored = true
      end
    else
      if k.stored then forget[#forget + 1] = name end
      keys[name] = nil
    end
    C.keys[name] = nil
  end
  F.bulk('HDEL', N.keys, forget)
  F.bulk('ZREM', N.names, forget)
  F.bulk('HSET', N.keys, put)
  F.bulk('ZADD', N.names, names)
end

function F.flush()
  S.flushed = true
  F.flushReady()
  for _, name in ipairs({ 'items', 'links', 'receipts', 'failures' }) do F.write('HSET', 'HDEL', N[name], C[name]) end
  for _, name in ipairs({ 'leases', 'due', 'delayed', 'expiries', 'dead' }) do F.writeScores(N[name], C[name]) end
  F.flushKeys()
end
`;
