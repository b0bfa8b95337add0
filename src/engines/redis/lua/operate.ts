/** What operators do to items, keys and queues. */
export const OPERATE: string = String.raw`
local function cancel(id)
  local receipt, seq, item = locate(id)
  if receipt and receipt.state ~= '' then return 'ended' end
  if not item then return 'missing' end
  if deadReport(seq, item) then return 'ended' end
  local name = item.key
  local k = findKey(name)
  local isHead = k.head == seq
  if isHead and k.fence > 0 and not k.held then
    k.cancel = true
    save(name)
    return 'requested'
  end
  endItem(seq, item, 'cancelled', item.attempt + (isHead and k.attempt or 0))
  if not isHead and k.delays > 0 and isDelayed(name, seq) then
    undelay(name, k, seq)
    return 'cancelled'
  end
  k.waits = k.waits - 1
  waiting[item.level] = waiting[item.level] - 1
  save(name)
  if not isHead then
    k.gaps = true
  elseif k.fence > 0 then
    k.head, k.attempt, k.due = 0, 0, 0
  else
    withdraw(name, k)
    promote(name, k)
  end
  return 'cancelled'
end

local function pauseQueue(isPaused)
  paused, changed = isPaused, true
  -- Whoever waits for work looks again.
  if not isPaused then opened = opened + 1 end
end

local function pauseKey(name, isPaused)
  local k = findKey(name)
  if not k and not isPaused then return end
  k = k or makeKey(name)
  if k.paused == isPaused then return end
  k.paused = isPaused
  save(name)
  if isPaused and k.state == READY then
    outOfReady(name, k)
    k.state = PARKED
  elseif not isPaused and k.state == PARKED then
    open(name, k)
  end
end

local function reviveOne(seq, isRetry)
  local item = findItem(seq)
  deadChanges[seq], failures[seq] = false, false
  dead, changed = dead - 1, true
  local id = idOf(seq, item.id)
  local remembered = isRemembered(item.id, item.keep)
  if not isRetry then
    dropItem(seq)
    -- It stays dead as of then, but is remembered from now on only as long as other ended items.
    local r = remembered and findReceipt(id)
    if r and item.keep > 0 then
      receipts[id] = pack(r.seq, r.key, r.level, r.submitted, expire(id, item.keep), r.state, r.at, r.attempt, r.kind,
        r.form, r.body, r.failure)
    elseif r then
      receipts[id] = false
    end
    return
  end
  item.attempt, item.due = 0, 0
  saveItem(seq, item)
  if remembered then remember(id, seq, item.key, item.level, item.submitted) end
  arrive(item.key, findKey(item.key) or makeKey(item.key), seq, item.level, false)
end

-- Those that died up to a place, oldest first, so many at a time. Returns how many, and up to which place to go on; the place comes first.
local function reviveAll(isRetry, upTo, limit)
  flush()
  if upTo == '' then upTo = digits(nextNumber()) end
  local numbers = call('ZRANGEBYSCORE', DEAD, '-inf', upTo, 'LIMIT', 0, limit)
  for _, seq in ipairs(numbers) do reviveOne(tonumber(seq), isRetry) end
  return { upTo, #numbers }
end

local function reviveNamed(isRetry, id)
  local _, seq, item = locate(id)
  if not item or not deadReport(seq, item) then return 0 end
  reviveOne(seq, isRetry)
  return 1
end
`;
