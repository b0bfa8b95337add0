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
function F.addLane(k, level, seq)
  if not k.lanes then
    k.lanes = {}
    for index = 1, S.levels * 2 do k.lanes[index] = '' end
  end
  k.lanes[level * 2 - 1], k.lanes[level * 2] = seq, seq
end

function F.firstOf(k, level) return k.lanes[level * 2 - 1] end

function F.pushBack(k, level, seq)
  local last = k.lanes and k.lanes[level * 2] or ''
  if last == '' then return F.addLane(k, level, seq) end
  C.links[last] = seq
  k.lanes[level * 2] = seq
end

function F.pushFront(k, level, seq)
  local first = k.lanes and F.firstOf(k, level) or ''
  if first == '' then return F.addLane(k, level, seq) end
  C.links[seq] = first
  k.lanes[level * 2 - 1] = seq
end

function F.linkOf(seq)
  local behind = C.links[seq] or call('HGET', N.links, seq)
  if not behind then error({ err = 'BATONBROKEN the line is broken behind item ' .. seq }) end
  return behind
end

function F.popFront(k, level)
  local seq, last = F.firstOf(k, level), k.lanes[level * 2]
  if seq == last then
    F.addLane(k, level, '')
    return seq
  end
  k.lanes[level * 2 - 1] = F.linkOf(seq)
  C.links[seq] = false
  return seq
end

-- A key without lease that has a head goes where it belongs.
function F.open(name, k)
  k.cancel = false
  if k.due > now then
    k.state = 'blocked'
    F.later('B' .. name, k.due)
  else
    k.due = 0
    if k.paused or k.kept > 0 then k.state = 'parked' else F.toReady(name, k) end
  end
  F.save(name)
end

-- Takes it out of there, before its head or its place changes.
function F.withdraw(name, k)
  if k.state == 'ready' then F.outOfReady(name, k) elseif k.state == 'blocked' then F.never('B' .. name) end
  k.state = 'idle'
end

function F.makeHead(name, k, seq, level, due)
  k.head, k.level, k.attempt, k.due, k.place = seq, level, 0, due, F.nextNumber()
  F.open(name, k)
end

-- The head goes to the front of its own lane, with its attempts and its back-off.
function F.stepBack(name, k)
  if k.attempt > 0 or k.due > 0 then
    local item = F.findItem(k.head)
    item.attempt, item.due = item.attempt + k.attempt, k.due
    F.saveItem(k.head, item)
    k.gaps = true
  end
  F.pushFront(k, k.level, k.head)
  k.head, k.attempt, k.due = '', 0, 0
end

-- The head is gone: the first item of the most urgent lane takes its place.
function F.promote(name, k)
  for level = 1, k.lanes and S.levels or 0 do
    while F.firstOf(k, level) ~= '' do
      local seq = F.popFront(k, level)
      local due = 0
      if k.gaps then
        -- An item that was cancelled while it waited is only a number by now.
        local item = F.findItem(seq)
        due = item and item.due
      end
      if due then return F.makeHead(name, k, seq, level, due) end
    end
  end
  k.head, k.attempt, k.due, k.state, k.gaps, k.lanes, k.cancel = '', 0, 0, 'idle', false, false, false
  -- A key that is forgotten is no longer distrusted.
  if k.delays == 0 and not k.paused then k.alone = 0 end
  F.save(name)
end

function F.waitsAbove(k)
  for level = 1, k.lanes and k.level - 1 or 0 do
    while F.firstOf(k, level) ~= '' do
      if not k.gaps or F.packedItem(F.firstOf(k, level)) then return true end
      F.popFront(k, level)
    end
  end
  return false
end

-- The lease ended and the head stays, unless something more urgent came meanwhile.
function F.resume(name, k)
  if k.head == '' then return F.promote(name, k) end
  if F.waitsAbove(k) then
    F.stepBack(name, k)
    return F.promote(name, k)
  end
  F.open(name, k)
end

-- An item comes to the key: a new one to the back of its lane, one that yielded its place to the front.
function F.arrive(name, k, seq, level, front)
  F.count(k, level, 1)
  if k.fence == 0 and k.head == '' then
    F.makeHead(name, k, seq, level, 0)
  elseif k.fence == 0 and level < k.level then
    F.withdraw(name, k)
    F.stepBack(name, k)
    F.makeHead(name, k, seq, level, 0)
  else
    if front then F.comeBack(k, level, seq) else F.pushBack(k, level, seq) end
    F.save(name)
  end
end

function F.delay(name, k, seq, due, mark)
  F.later(mark .. seq, due)
  C.delayed[name .. '\0' .. seq] = 0
  S.delayed = S.delayed + 1
  k.delays = k.delays + 1
  F.save(name)
end

-- In order. Names hold no NUL, so that this finds those of one key only.
function F.delayedOf(name)
  F.writeScores(N.delayed, C.delayed)
  local members = call('ZRANGEBYLEX', N.delayed, '[' .. name .. '\0', '(' .. name .. '\1')
  local numbers = {}
  for index, member in ipairs(members) do numbers[index] = string.sub(member, #name + 2) end
  return numbers
end

function F.isDelayed(name, seq)
  local member = name .. '\0' .. seq
  local change = C.delayed[member]
  if change ~= nil then return change ~= false end
  return call('ZSCORE', N.delayed, member) ~= false
end

function F.undelay(name, k, seq)
  C.delayed[name .. '\0' .. seq] = false
  F.never('D' .. seq)
  F.never('Y' .. seq)
  S.delayed = S.delayed - 1
  k.delays = k.delays - 1
  F.save(name)
end
`;
