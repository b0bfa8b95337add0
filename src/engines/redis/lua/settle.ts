/** Ends leases, each with what became of its item. The order of the arguments is that of `operations.ts`. */
export const SETTLE: string = String.raw`
local function retry(name, k, delayUs, yields)
  if delayUs == 0 or not yields then
    k.due = delayUs == 0 and 0 or now + delayUs
    k.place = nextNumber()
    return endLease(name, k)
  end
  local seq = k.head
  local item = findItem(seq)
  item.attempt = item.attempt + k.attempt
  saveItem(seq, item)
  delay(name, k, seq, now + delayUs, 'Y')
  running = running - 1
  letGo(name, k)
  promote(name, k)
end

local function finish(name, k)
  running = running - 1
  local worker = k.worker
  letGo(name, k)
  promote(name, k)
  if k.state == READY then released[#released + 1] = { name = name, worker = worker } end
end

-- Returns whether the lease was good, and how many arguments the ending took.
local function settle(at)
  local name, fence, ending = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
  local taken = (ending == 'result' and 6) or (ending == 'retry' and 5) or (ending == 'dead' and 4) or 3
  local k = current(name, fence)
  if not k then return 0, taken end
  if k.held or ending == 'release' then
    -- The attempt is given back: the item was not tried to its end. A hold has none to give.
    if not k.held and not k.cancel then k.attempt = k.attempt - 1 end
    endLease(name, k)
  elseif ending == 'retry' then
    if k.cancel then endLease(name, k)
    else retry(name, k, tonumber(ARGV[at + 3]), ARGV[at + 4] == 'yield') end
  else
    if ending == 'done' then endHead(name, k, 'done')
    elseif ending == 'result' then endHead(name, k, 'done', ARGV[at + 3], ARGV[at + 4], ARGV[at + 5])
    elseif ending == 'dead' then bury(name, k, ARGV[at + 3])
    else endHead(name, k, 'cancelled') end
    finish(name, k)
  end
  return 1, taken
end
`;
