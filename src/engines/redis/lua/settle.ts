/** Ends leases, each with what became of its item. The order of the arguments is that of `operations.ts`. */
export const SETTLE: string = String.raw`
function F.retry(name, k, delayUs, yields)
  if delayUs == 0 or not yields then
    k.due = delayUs == 0 and 0 or now + delayUs
    k.place = F.nextNumber()
    return F.endLease(name, k)
  end
  local seq = k.head
  local item = F.findItem(seq)
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

-- Returns whether the lease was good, and how many arguments the ending took.
function F.settle(at)
  local name, fence, ending = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
  local taken = (ending == 'result' and 6) or (ending == 'retry' and 5) or (ending == 'dead' and 4) or 3
  local k = F.current(name, fence)
  if not k then return 0, taken end
  if k.held or ending == 'release' then
    -- The attempt is given back: the item was not tried to its end. A hold has none to give.
    if not k.held and not k.cancel then k.attempt = k.attempt - 1 end
    F.endLease(name, k)
  elseif ending == 'retry' then
    if k.cancel then F.endLease(name, k)
    else F.retry(name, k, tonumber(ARGV[at + 3]), ARGV[at + 4] == 'yield') end
  else
    if ending == 'done' then F.endHead(name, k, 'done')
    elseif ending == 'result' then F.endHead(name, k, 'done', ARGV[at + 3], ARGV[at + 4], ARGV[at + 5])
    elseif ending == 'dead' then F.bury(name, k, ARGV[at + 3])
    else F.endHead(name, k, 'cancelled') end
    F.finish(name, k)
  end
  return 1, taken
end

function O.settle(first)
  local answers, behind = {}, first + 1
  for index = 1, tonumber(ARGV[first]) do
    local answer, taken = F.settle(behind)
    answers[index], behind = answer, behind + taken
  end
  return answers, behind
end
`;
