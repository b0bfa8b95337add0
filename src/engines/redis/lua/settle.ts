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
  F.finish(name, k)
end

-- The lease is over, and its item is not in line any more.
function F.finish(name, k)
  S.running = S.running - 1
  F.letGo(name, k)
  F.promote(name, k)
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

-- Ends a lease that is good.
function F.settle(name, k, at, isNew)
  local ending = ARGV[at]
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
  return 1
end

-- The names of the keys stand before the reports, so that they are looked up at once.
function F.reports(first, finish, sizeOf)
  local answers, count = {}, tonumber(ARGV[first])
  local names = { unpack(ARGV, first + 1, first + count) }
  F.findKeys(names)
  local at = first + count + 1
  for index, name in ipairs(names) do
    local k = F.current(name, tonumber(ARGV[at]))
    local terms, isNew = F.endBefore(name, k, at + 1)
    answers[index] = k and finish(name, k, terms, isNew) or 0
    at = terms + sizeOf(ARGV[terms])
  end
  return answers
end

function O.settle(first) return F.reports(first, F.settle, F.sizeOf) end
function O.renew(first) return F.reports(first, F.renew, function() return 2 end) end
`;
