import { ITEM_BYTES } from "./bounds.ts";

/**
 * Runs: a lease covers its head and, behind it, the next items of the head's lane, which stay in line meanwhile. The record of the key says
 * how many it covers, which of them are to be cancelled, and whether one of them is remembered when it has ended.
 */
export const RUNS: string = String.raw`
-- So many numbers at most from the front of the head's lane.
function F.behind(k, most)
  local numbers, seq = {}, most > 0 and k.lanes and F.firstOf(k, k.level) or ''
  while seq ~= '' do
    if not k.gaps or F.packedItem(seq) then numbers[#numbers + 1] = seq end
    if #numbers == most or seq == k.lanes[k.level * 2] then break end
    seq = F.linkOf(seq)
  end
  return numbers
end

-- Adds to the run of a new lease what may follow its head: items that were never tried either. Returns how much room is left in the reply.
function F.cover(k, most, room, grants)
  local numbers = F.behind(k, math.min(most - 1, math.ceil(room / ${ITEM_BYTES})))
  local records = F.packedItems(numbers)
  k.remembered = false
  for index, seq in ipairs(numbers) do
    local text, body, id, keep, _, attempt = F.show('', '', seq, records[index], 1)
    if attempt > 0 or room <= 0 then break end
    k.covered, room = k.covered + 1, room - #body - ${ITEM_BYTES}
    k.remembered = k.remembered or F.isRemembered(id, keep)
    grants[#grants + 1], grants[#grants + 2] = text, body
  end
  return room
end

-- An item that yielded is back. What a lease covers is not overtaken: perhaps it has begun.
function F.comeBack(k, level, seq)
  local covered = level == k.level and F.behind(k, k.covered - 1) or {}
  local last = covered[#covered]
  if not last then return F.pushFront(k, level, seq) end
  if last == k.lanes[level * 2] then return F.pushBack(k, level, seq) end
  C.links[seq], C.links[last] = F.linkOf(last), seq
end

-- What the lease covers behind its head waits as before. A cancel that the holder never heard of is carried out.
function F.uncover(k)
  for seq in pairs(k.cancels or {}) do
    local item = F.findItem(seq)
    if item then F.cancelWaiting(k, seq, item) end
  end
  k.covered, k.cancels = 1, false
end

-- The head of the run has ended: the next one runs, and its attempt counts.
function F.runNext(k)
  local seq
  repeat seq = F.popFront(k, k.level) until not k.gaps or seq == '' or F.packedItem(seq)
  k.head, k.attempt, k.due, k.place, k.covered = seq, 1, 0, F.nextNumber(), k.covered - 1
  k.id, k.keep, k.submitted, k.base, k.tried = '', 0, 0, 0, false
  if k.remembered then
    local i = F.findItem(seq)
    if not i then error({ err = 'BATONBROKEN item ' .. seq .. ' is gone' }) end
    k.id, k.keep, k.submitted, k.tried = i.id, i.keep, i.submitted, i.tried ~= ''
  end
  k.cancel = k.cancels and k.cancels[seq] or false
  if k.cancel then k.cancels[seq] = nil end
  F.count(k, k.level, -1)
end

-- Ends what a report says has ended before the last one, and skips what was reported before. Without a good lease it only reads on. Returns where
-- the arguments go on, and, if the report names any, whether one was new: then the head was counted just now.
function F.endBefore(name, k, at)
  if ARGV[at] ~= 'ended' then return at end
  local count, isNew = tonumber(ARGV[at + 1]), false
  at = at + 2
  for _ = 1, count do
    if k and k.covered > 1 and ARGV[at] == F.idOf(k.head, k.id) then
      F.conclude(name, k, at + 1)
      F.runNext(k)
      isNew = true
    end
    at = at + 1 + F.sizeOf(ARGV[at + 1])
  end
  return at, isNew
end
`;
