/** Ends leases, each with what became of its item. The order of the arguments is that of `operations.ts`. */
export const SETTLE: string = String.raw`
function F.retry(name, k, delayUs, yields, brief)
  local item = F.noteAttempt(k, 'failed', brief)
  if delayUs == 0 or not yields then
    k.due = delayUs == 0 and 0 or now + delayUs
    k.place = F.nextNumber()
    return F.endLease(name, k)
  end
  local seq = k.head
  item.attempt = item.attempt + k.attempt
  F.saveItem(seq, item)
  F.delay(name, k, seq, now + delayUs, 'Y')
  S.running = S.running - 1
  F.letGo(name, k)
  F.promote(name, k)
end

function F.finish(name, k)
  S.running = S.running - 1
  local worker = k.worker
  F.letGo(name, k)
  F.promote(name, k)
  if k.state == 'ready' then S.released[#S.released + 1] = { name = name, worker = worker } end
end

-- How many arguments an ending has.
function F.sizeOf(ending)
  return (ending == 'result' and 4) or (ending == 'retry' and 4) or (ending == 'dead' and 3) or (ending == 'missing' and 2) or 1
end

-- What becomes of a head that is over.
function F.conclude(name, k, at)
  local ending = ARGV[at]
  if ending == 'done' then F.endHead(name, k, 'done')
  elseif ending == 'result' then F.endHead(name, k, 'done', ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
  elseif ending == 'missing' then F.endHead(name, k, 'done', '', '', '', ARGV[at + 1])
  elseif ending == 'dead' then F.bury(name, k, ARGV[at + 1], ARGV[at + 2])
  else F.endHead(name, k, 'cancelled') end
end

-- Returns whether the lease was good, and where the next settlement stands.
function F.settle(first)
  local name = ARGV[first]
  local k = F.current(name, tonumber(ARGV[first + 1]))
  local at, isNew = F.endBefore(name, k, first + 2)
  local ending = ARGV[at]
  local behind = at + F.sizeOf(ending)
  if not k then return 0, behind end
  if k.held then
    F.endLease(name, k)
  elseif ending == 'release' then
    -- The attempt is given back: the item was not tried to its end, and not begun if it was counted just now.
    if not k.cancel and not isNew then F.noteAttempt(k, 'released', '') end
    if not k.cancel or isNew then k.attempt = k.attempt - 1 end
    F.endLease(name, k)
  else
    k.alone = math.max(0, k.alone - 1)
    if ending == 'retry' and k.cancel then
      F.endLease(name, k)
    elseif ending == 'retry' then
      F.retry(name, k, tonumber(ARGV[at + 1]), ARGV[at + 2] == 'yield', ARGV[at + 3])
    else
      F.conclude(name, k, at)
      F.finish(name, k)
    end
  end
  return 1, behind
end

function O.settle(first)
  local answers, behind = {}, first + 1
  for index = 1, tonumber(ARGV[first]) do answers[index], behind = F.settle(behind) end
  return answers, behind
end
`;
