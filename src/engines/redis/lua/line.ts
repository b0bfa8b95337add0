/**
 * How items stand in line for a key: one is the head, the others wait behind it in a lane per level. Every rule of order (G5, G8) is here,
 * and so are the states of a key:
 *
 *   idle ──item arrives──▶ ready ──claim──▶ leased ──settle, or the lease runs out──▶ ready, blocked, parked or idle
 *                            │                ▲
 *                            └────hold────────┘          blocked ──its time comes──▶ ready
 *
 * A parked key has a head that could run, but the key is paused, or kept for a moment for somebody who waits to hold it.
 */
export const LINE: string = String.raw`
-- A lane is a chain of links from its first to its last item: two numbers in the record of its key.
local function addLane(k, level, seq)
  if not k.lanes then
    k.lanes = {}
    for index = 1, levels * 2 do k.lanes[index] = 0 end
  end
  k.lanes[level * 2 - 1], k.lanes[level * 2] = seq, seq
end

local function firstOf(k, level) return k.lanes[level * 2 - 1] end

local function pushBack(k, level, seq)
  local last = k.lanes and k.lanes[level * 2] or 0
  if last == 0 then return addLane(k, level, seq) end
  links[last] = seq
  k.lanes[level * 2] = seq
end

local function pushFront(k, level, seq)
  local first = k.lanes and firstOf(k, level) or 0
  if first == 0 then return addLane(k, level, seq) end
  links[seq] = first
  k.lanes[level * 2 - 1] = seq
end

local function popFront(k, level)
  local seq, last = firstOf(k, level), k.lanes[level * 2]
  if seq == last then
    addLane(k, level, 0)
    return seq
  end
  local behind = links[seq] or tonumber(call('HGET', LINKS, digits(seq)) or nil)
  if not behind then error({ err = 'BATONBROKEN the line is broken behind item ' .. digits(seq) }) end
  links[seq] = false
  k.lanes[level * 2 - 1] = behind
  return seq
end

-- A key without lease that has a head goes where it belongs.
local function open(name, k)
  k.cancel = false
  if k.due > now then
    k.state = BLOCKED
    later('B' .. name, k.due)
  else
    k.due = 0
    if k.paused or k.kept > 0 then k.state = PARKED else toReady(name, k) end
  end
  save(name)
end

-- Takes it out of there, before its head or its place changes.
local function withdraw(name, k)
  if k.state == READY then outOfReady(name, k) elseif k.state == BLOCKED then never('B' .. name) end
  k.state = IDLE
end

local function makeHead(name, k, seq, level, due)
  k.head, k.level, k.attempt, k.due, k.place = seq, level, 0, due, nextNumber()
  open(name, k)
end

-- The head goes to the front of its own lane, with its attempts and its back-off.
local function stepBack(name, k)
  if k.attempt > 0 or k.due > 0 then
    local item = findItem(k.head)
    item.attempt, item.due = item.attempt + k.attempt, k.due
    saveItem(k.head, item)
    k.gaps = true
  end
  pushFront(k, k.level, k.head)
  k.head, k.attempt, k.due = 0, 0, 0
end

-- The head is gone: the first item of the most urgent lane takes its place.
local function promote(name, k)
  for level = 1, k.lanes and levels or 0 do
    while firstOf(k, level) > 0 do
      local seq = popFront(k, level)
      local due = 0
      if k.gaps then
        -- An item that was cancelled while it waited is only a number by now.
        local item = findItem(seq)
        due = item and item.due
      end
      if due then return makeHead(name, k, seq, level, due) end
    end
  end
  k.head, k.attempt, k.due, k.state, k.gaps, k.lanes, k.cancel = 0, 0, 0, IDLE, false, false, false
  save(name)
end

local function waitsAbove(k)
  for level = 1, k.lanes and k.level - 1 or 0 do
    while firstOf(k, level) > 0 do
      if not k.gaps or packedItem(firstOf(k, level)) then return true end
      popFront(k, level)
    end
  end
  return false
end

-- The lease ended and the head stays, unless something more urgent came meanwhile.
local function resume(name, k)
  if k.head == 0 then return promote(name, k) end
  if waitsAbove(k) then
    stepBack(name, k)
    return promote(name, k)
  end
  open(name, k)
end

-- An item comes to the key: a new one to the back of its lane, one that yielded its place to the front.
local function arrive(name, k, seq, level, front)
  waiting[level] = waiting[level] + 1
  k.waits = k.waits + 1
  if k.fence == 0 and k.head == 0 then
    makeHead(name, k, seq, level, 0)
  elseif k.fence == 0 and level < k.level then
    withdraw(name, k)
    stepBack(name, k)
    makeHead(name, k, seq, level, 0)
  else
    if front then pushFront(k, level, seq) else pushBack(k, level, seq) end
    save(name)
  end
end

local function delay(name, k, seq, due, mark)
  later(mark .. digits(seq), due)
  delayedChanges[name .. '\0' .. digits(seq)] = 0
  delayed = delayed + 1
  k.delays = k.delays + 1
  save(name)
end

-- By number. Names hold no NUL, so that this finds those of one key only.
local function delayedOf(name)
  writeChanges(DELAYED, delayedChanges)
  local members = call('ZRANGEBYLEX', DELAYED, '[' .. name .. '\0', '(' .. name .. '\1')
  local numbers = {}
  for index, member in ipairs(members) do numbers[index] = tonumber(string.sub(member, #name + 2)) end
  table.sort(numbers)
  return numbers
end

local function isDelayed(name, seq)
  local member = name .. '\0' .. digits(seq)
  local change = delayedChanges[member]
  if change ~= nil then return change ~= false end
  return call('ZSCORE', DELAYED, member) ~= false
end

local function undelay(name, k, seq)
  delayedChanges[name .. '\0' .. digits(seq)] = false
  never('D' .. digits(seq))
  never('Y' .. digits(seq))
  delayed = delayed - 1
  k.delays = k.delays - 1
  save(name)
end
`;
